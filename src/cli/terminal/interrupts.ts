const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type Interrupt = (typeof SIGNALS)[number];

export interface InterruptHandlers {
  /** The first one: pass it on. */
  first(signal: Interrupt): void;
  /** The next one: the user is serious. */
  again(signal: Interrupt): void;
}

const NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

export function exitCodeAfter(signal: Interrupt): number {
  return 128 + NUMBERS[signal];
}

/** Ctrl-C and its kin while a program runs elsewhere. Returns what takes the handlers away again. */
export function onInterrupts(handlers: InterruptHandlers): () => void {
  let count = 0;
  const listeners = SIGNALS.map((signal) => {
    const listener = () => {
      count += 1;
      if (count === 1) handlers.first(signal);
      else handlers.again(signal);
    };
    process.on(signal, listener);
    return () => void process.off(signal, listener);
  });
  return () => {
    for (const off of listeners) off();
  };
}
