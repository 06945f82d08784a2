import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SandboxProcess } from '../../core/ports/session.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { OpenSandbox } from './use-sandbox.ts';
import { openSandbox } from './use-sandbox.ts';

type Act = (process: SandboxProcess) => Promise<void>;

const notFound = (processId: string) =>
  new SandboxerError('SBX_PROCESS_NOT_FOUND', `There is no process "${processId}".`);

/** Reads along and forgets, so that what was just sent arrives before the channel is closed. */
async function linger(process: SandboxProcess, lingerMs: number, control: Control): Promise<void> {
  const enough = new AbortController();
  const read = async () => {
    for await (const _ of process.output) if (enough.signal.aborted) return;
  };
  await Promise.race([read().catch(() => {}), control.clock.sleep(lingerMs, enough.signal).catch(() => {})]);
  enough.abort();
}

interface Action {
  readonly processId: string;
  /** How long the effect of the action may take to arrive. */
  readonly lingerMs: number;
  readonly act: Act;
}

interface ActOnProcess extends Action {
  readonly id: string;
}

/**
 * Sends a signal, input or a new size to a process that runs: one that this server started and still reads, or one in the
 * background. This is use, and needs the right to use.
 */
export async function actOnProcess(
  control: Control,
  caller: Caller,
  { id, processId, lingerMs, act }: ActOnProcess,
): Promise<void> {
  const opened = await openSandbox(control, caller, { id, counts: true });
  await actIn(control, opened, { processId, lingerMs, act });
}

interface WriteToProcess {
  readonly id: string;
  readonly processId: string;
  readonly lingerMs: number;
  readonly write: Act;
}

/** As `actOnProcess`, for a process whose input is open: other processes would never read the bytes. */
export async function writeToProcess(
  control: Control,
  caller: Caller,
  { id, processId, lingerMs, write }: WriteToProcess,
): Promise<void> {
  const opened = await openSandbox(control, caller, { id, counts: true });
  await requireInput(opened, processId);
  await actIn(control, opened, { processId, lingerMs, act: write });
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
  control: Control,
  { sandbox, session }: OpenSandbox,
  { processId, lingerMs, act }: Action,
): Promise<void> {
  const running = control.sessions.running.get(`${sandbox.uid}:${processId}`);
  if (running) return act(running);
  if (!session.attach) throw notFound(processId);
  const process = await session.attach(processId, 0);
  try {
    await act(process);
    await linger(process, lingerMs, control);
  } finally {
    await process.detach();
  }
}
