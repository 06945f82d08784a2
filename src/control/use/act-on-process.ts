import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SandboxProcess } from '../../core/ports/session.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { OpenSandbox, Use } from './use-sandbox.ts';
import { openSandbox } from './use-sandbox.ts';

type Act = (process: SandboxProcess) => Promise<void>;

const notFound = (processId: string) =>
  new SandboxerError('SBX_PROCESS_NOT_FOUND', `There is no process "${processId}".`);

/** Reads along and forgets, so that what was just sent arrives before the channel is closed. */
async function linger(process: SandboxProcess, lingerMs: number, use: Use): Promise<void> {
  const enough = new AbortController();
  const read = async () => {
    for await (const _ of process.output) if (enough.signal.aborted) return;
  };
  await Promise.race([read().catch(() => {}), use.deps.clock.sleep(lingerMs, enough.signal).catch(() => {})]);
  enough.abort();
}

/**
 * A signal, input or a new size for a process that runs: one that this server started and still reads, or one in the
 * background. It is use, and needs the right to use.
 */
export async function actOnProcess(
  use: Use,
  caller: Caller,
  id: string,
  processId: string,
  lingerMs: number,
  act: Act,
): Promise<void> {
  const opened = await openSandbox(use, caller, id, true);
  await actIn(use, opened, processId, lingerMs, act);
}

/** As `actOnProcess`, for one whose input is open: what is written to another is read by nobody. */
export async function writeToProcess(
  use: Use,
  caller: Caller,
  id: string,
  processId: string,
  lingerMs: number,
  write: Act,
): Promise<void> {
  const opened = await openSandbox(use, caller, id, true);
  await requireInput(opened, processId);
  await actIn(use, opened, processId, lingerMs, write);
}

async function requireInput({ session }: OpenSandbox, processId: string): Promise<void> {
  const all = (await session.processes?.()) ?? [];
  const process = all.find(({ process_id }) => process_id === processId);
  if (process === undefined || (process.running && process.stdin_open !== false)) return;
  const why = process.running ? 'has no open input' : 'has ended';
  throw new SandboxerError('SBX_INVALID_STATE', `The process "${processId}" ${why}.`, {
    remedy: 'Start it with "stdin_open": true, or in the background with a terminal, to write to it later.',
  });
}

async function actIn(
  use: Use,
  { sandbox, session }: OpenSandbox,
  processId: string,
  lingerMs: number,
  act: Act,
): Promise<void> {
  const running = use.sessions.running.get(`${sandbox.uid}:${processId}`);
  if (running) return act(running);
  if (!session.attach) throw notFound(processId);
  const process = await session.attach(processId, 0);
  try {
    await act(process);
    await linger(process, lingerMs, use);
  } finally {
    await process.detach();
  }
}
