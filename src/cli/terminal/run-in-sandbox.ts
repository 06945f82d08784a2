import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import type { ExecChunk } from '../../client/streams/frames.ts';
import type { InteractiveExec } from '../../client/streams/interactive-exec.ts';
import { SandboxerConnectionError } from '../../client/transport/connection-error.ts';
import type { ExecInput, ExitStatus, Signal } from '../../contract/sandboxes/exec.ts';
import type { Invocation } from '../invocation/invocation.ts';
import { takeTerminal, terminalSize } from './take-terminal.ts';
import { writeChunk } from './write-output.ts';

export interface ProgramOptions {
  readonly sandboxId: string;
  readonly request: ExecInput;
  /** Passes our input on. */
  readonly stdin: boolean;
  /** Runs in a terminal; ours is connected to it. */
  readonly tty: boolean;
  readonly signal: AbortSignal;
  /** Called when it runs, with a function that signals it. */
  onStarted?(kill: (signal: Signal) => Promise<void>): void;
}

async function pumpInput(exec: InteractiveExec): Promise<void> {
  try {
    for await (const chunk of process.stdin) await exec.write(chunk as Buffer);
  } catch {
    // An unreadable input has ended.
  }
  await exec.endInput();
}

async function passOutput(chunks: AsyncIterable<ExecChunk>, invocation: Invocation): Promise<ExitStatus> {
  let exit: ExitStatus | null = null;
  for await (const chunk of chunks) {
    if (chunk.type === 'exit') exit = chunk.exit;
    await writeChunk(chunk, invocation.printer);
  }
  if (exit === null)
    throw new SandboxerConnectionError('lost', 'The output ended before the program did.', true);
  return exit;
}

/** Returns the request with the size and the kind of our terminal. */
function inTerminal(request: ExecInput): ExecInput {
  const { TERM } = process.env;
  return { ...request, tty: terminalSize(), env: { ...(TERM ? { TERM } : {}), ...request.env } };
}

async function runInteractively(
  invocation: Invocation,
  client: SandboxerClient,
  options: ProgramOptions,
): Promise<ExitStatus> {
  const { sandboxId, tty, signal } = options;
  const request = tty ? inTerminal(options.request) : options.request;
  const exec = await client.interactive(sandboxId, request, { signal });
  options.onStarted?.((name) => exec.kill(name));
  const giveBack = tty ? takeTerminal(exec) : () => {};
  try {
    if (options.stdin) void pumpInput(exec);
    else await exec.endInput();
    return await passOutput(exec, invocation);
  } finally {
    giveBack();
    process.stdin.pause();
  }
}

/** Runs a program in the sandbox as if it ran here. Resolves with how it ended. */
export async function runInSandbox(
  invocation: Invocation,
  client: SandboxerClient,
  options: ProgramOptions,
): Promise<ExitStatus> {
  if (options.stdin || options.tty) return runInteractively(invocation, client, options);
  const handle = client.exec(options.sandboxId, options.request, { signal: options.signal });
  options.onStarted?.((name) => handle.kill(name));
  return passOutput(handle, invocation);
}

/** Returns the program's own exit code, and a message on why it ended where the code does not show it. */
export function exitCodeFrom(exit: ExitStatus, invocation: Invocation): number {
  if (exit.timed_out) invocation.printer.note('the program was killed: its time was up');
  if (exit.out_of_memory) invocation.printer.note('the program was killed: it ran out of memory');
  return exit.code;
}
