const INTERRUPTS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
export type Interrupt = (typeof INTERRUPTS)[number];

/** Signals that end no command by themselves when a program handles them. */
const PASSED = ['SIGUSR1', 'SIGUSR2'] as const;

export interface InterruptHandlers {
  /** Called at the first signal: pass it on. */
  first(signal: Interrupt): void;
  /** Called at the next one: end the command. */
  again(signal: Interrupt): void;
}

const NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGTERM: 15 } as const;

export function exitCodeAfter(signal: Interrupt): number {
  return 128 + NUMBERS[signal];
}

function on<Name extends NodeJS.Signals>(
  signals: readonly Name[],
  handle: (signal: Name) => void,
): () => void {
  const listeners = signals.map((signal) => {
    const listener = () => handle(signal);
    process.on(signal, listener);
    return () => void process.off(signal, listener);
  });
  return () => {
    for (const off of listeners) off();
  };
}

/** Handles Ctrl-C and similar signals while a program runs elsewhere. Returns a function that removes the handlers. */
export function onInterrupts(handlers: InterruptHandlers): () => void {
  let count = 0;
  return on(INTERRUPTS, (signal) => {
    count += 1;
    if (count === 1) handlers.first(signal);
    else handlers.again(signal);
  });
}

/** Handles signals whose meaning is the program's alone. Returns a function that removes the handler. */
export function onPassed(handle: (signal: (typeof PASSED)[number]) => void): () => void {
  return on(PASSED, handle);
}
