import { SandboxerError } from '../../contract/errors/errors.ts';
import type { ExecRequest, ProcessInfo } from '../../contract/sandboxes/exec.ts';
import type { SandboxDocuments } from '../../core/lifecycle/sandbox.ts';
import { startDirectory } from '../../core/ports/inputs.ts';
import type {
  AbortableOptions,
  SandboxProcess,
  SandboxSession,
  ServiceLog,
} from '../../core/ports/session.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import { explainLoss } from '../lifecycle/explain-loss.ts';
import { beginUse, openSandbox } from './use-sandbox.ts';

/** A process, or a log, that a caller follows. */
export interface Followed<P extends ServiceLog = SandboxProcess> {
  readonly process: P;
  readonly startedAt: number;
  /** When the process ended, if it had before it was followed and that is known. */
  readonly endedAt: number | null;
  /** Returns the error to report instead of one that came while the process was followed: the sandbox may have ended. */
  explain(error: unknown): Promise<unknown>;
}

export interface Started extends Followed {
  /** Resolves when it was given the input of its request; `null` when there is none. */
  readonly fed: Promise<void> | null;
}

function argvOf(command: ExecRequest['command']): readonly string[] {
  return typeof command === 'string' ? ['/bin/sh', '-c', command] : command;
}

/** The recipe's variables are part of the environment; what the request says wins. */
async function environment(control: Control, uid: string, generation: number, env: Record<string, string>) {
  const known = control.sessions.variables(uid, generation);
  if (known) return { ...known, ...env };
  const documents = await control.store.read('variables', (tx) => tx.sandboxes.documents(uid, generation));
  const { variables } = (documents as SandboxDocuments).recipe;
  control.sessions.learn(uid, generation, variables);
  return { ...variables, ...env };
}

/** Whether its input is open when it starts, and whether it stays open when `stdin` was written. */
function inputOf({ stdin, stdin_open, background, tty }: ExecRequest, interactive: boolean) {
  const keeps = interactive || (stdin_open ?? (background && tty !== undefined));
  return { opens: keeps || stdin !== undefined, keeps };
}

interface ExecInSandbox {
  readonly id: string;
  readonly request: ExecRequest;
  readonly interactive: boolean;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Starts a program. `interactive` keeps its input open for the caller to write to; otherwise it gets the request's
 * `stdin` and then end-of-file, unless the request keeps it open.
 */
export async function execInSandbox(
  control: Control,
  caller: Caller,
  { id, request, interactive, signal }: ExecInSandbox,
): Promise<Started> {
  const { sandbox, session, noted } = await beginUse(control, caller, { id, service: request.service });
  if (request.background && !session.attach) {
    throw new SandboxerError(
      'SBX_UNSUPPORTED',
      `${sandbox.extensionId} cannot keep a process in the background.`,
      { field: 'background' },
    );
  }
  const extension = control.extensions.get(sandbox.extensionId as string)?.header;
  if (request.tty && !extension?.capabilities.pty) {
    throw new SandboxerError('SBX_UNSUPPORTED', `${sandbox.extensionId} has no terminal.`, { field: 'tty' });
  }
  const startedAt = control.clock.now();
  const explain = (error: unknown) => explainLoss(control, sandbox, error);
  const input = inputOf(request, interactive);
  const env = await environment(control, sandbox.uid, sandbox.generation, request.env);
  const process = await session
    .spawn(
      {
        argv: argvOf(request.command),
        env,
        cwd: request.cwd ?? startDirectory(sandbox, extension),
        user: request.user ?? null,
        timeoutSeconds: request.timeout ?? null,
        terminal: request.tty ?? null,
        stdin: input.opens,
        background: request.background,
      },
      signal ? { signal } : {},
    )
    .catch(async (error: unknown) => {
      throw await explain(error);
    });
  await noted.catch(async (error: unknown) => {
    await process.kill('SIGKILL').catch(() => {});
    await process.detach();
    throw error;
  });
  const key = `${sandbox.uid}:${process.id}`;
  const inactive = control.activity.begin(sandbox.uid);
  const ended = () => {
    inactive();
    control.sessions.running.delete(key);
  };
  if (!request.background) control.sessions.running.set(key, process);
  process.exit.then(ended, ended);
  const { stdin, stdin_encoding } = request;
  const fed =
    interactive || stdin === undefined
      ? null
      : feed(process, Buffer.from(stdin, stdin_encoding), input.keeps);
  return { process, startedAt, endedAt: null, explain, fed };
}

/** A program that stops reading ends the feeding; that is its business, not an error. */
async function feed(process: SandboxProcess, input: Uint8Array, keepsOpen: boolean): Promise<void> {
  try {
    const piece = 65_536;
    for (let at = 0; at < input.length; at += piece) await process.write(input.subarray(at, at + piece));
    if (!keepsOpen) await process.endInput();
  } catch {}
}

/** Detaches from a background process as soon as it got its input, without making the caller wait. */
export async function leaveInBackground({ process, fed }: Started): Promise<void> {
  if (fed === null) return process.detach();
  // Unread output would block the program; it is kept for later readers.
  const readAlong = async () => {
    for await (const chunk of process.output) if (chunk.stream !== 'gap') chunk.done?.();
  };
  void Promise.race([fed, readAlong().catch(() => {})]).then(() => process.detach().catch(() => {}));
}

async function infoOf(session: SandboxSession, processId: string, options: AbortableOptions) {
  const all = (await session.processes?.(options)) ?? [];
  return all.find(({ process_id }) => process_id === processId);
}

interface AttachToProcess {
  readonly id: string;
  readonly processId: string;
  readonly from: number;
  readonly signal?: AbortSignal | undefined;
}

export async function attachToProcess(
  control: Control,
  caller: Caller,
  { id, processId, from, signal }: AttachToProcess,
): Promise<Followed> {
  const { sandbox, session } = await openSandbox(control, caller, { id, counts: false });
  if (!session.attach)
    throw new SandboxerError('SBX_UNSUPPORTED', `${sandbox.extensionId} keeps no background processes.`);
  const options = signal ? { signal } : {};
  const explain = (error: unknown) => explainLoss(control, sandbox, error);
  try {
    const process = await session.attach(processId, from, options);
    const info = await infoOf(session, processId, options).catch(() => undefined);
    return {
      process,
      startedAt: info ? Date.parse(info.started_at) : control.clock.now(),
      endedAt: info?.ended_at === undefined ? null : Date.parse(info.ended_at),
      explain,
    };
  } catch (error) {
    throw await explain(error);
  }
}

interface ListProcesses {
  readonly id: string;
  readonly service?: string | undefined;
}

export async function listProcesses(
  control: Control,
  caller: Caller,
  { id, service }: ListProcesses,
): Promise<ProcessInfo[]> {
  const { session } = await openSandbox(control, caller, { id, counts: false, service });
  return session.processes ? session.processes() : [];
}
