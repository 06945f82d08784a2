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
import { explainLoss } from '../lifecycle/explain-loss.ts';
import type { Use } from './use-sandbox.ts';
import { beginUse, openSandbox } from './use-sandbox.ts';

/** A process, or a log, that somebody follows. */
export interface Followed<P extends ServiceLog = SandboxProcess> {
  readonly process: P;
  readonly startedAt: number;
  /** Of one that had ended before it was followed, where that is known. */
  readonly endedAt: number | null;
  /** What to say instead of an error that came while it was followed: the sandbox may have ended under it. */
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
async function environment(use: Use, uid: string, generation: number, env: Record<string, string>) {
  const known = use.sessions.variables(uid, generation);
  if (known) return { ...known, ...env };
  const documents = await use.deps.store.read('variables', (tx) => tx.sandboxes.documents(uid, generation));
  const { variables } = (documents as SandboxDocuments).recipe;
  use.sessions.learn(uid, generation, variables);
  return { ...variables, ...env };
}

/** Whether its input is open when it starts, and whether it stays open when `stdin` was written. */
function inputOf({ stdin, stdin_open, background, tty }: ExecRequest, interactive: boolean) {
  const keeps = interactive || (stdin_open ?? (background && tty !== undefined));
  return { opens: keeps || stdin !== undefined, keeps };
}

/**
 * Starts a program. `interactive` keeps its input open for the caller to write to; otherwise it gets the request's
 * `stdin` and then end-of-file, unless the request keeps it open.
 */
export async function execInSandbox(
  use: Use,
  caller: Caller,
  id: string,
  request: ExecRequest,
  interactive: boolean,
  signal?: AbortSignal,
): Promise<Started> {
  const { sandbox, session, noted } = await beginUse(use, caller, id, request.service);
  if (request.background && !session.attach) {
    throw new SandboxerError(
      'SBX_UNSUPPORTED',
      `${sandbox.extensionId} cannot keep a process in the background.`,
      { field: 'background' },
    );
  }
  const extension = use.deps.extensions.get(sandbox.extensionId as string)?.header;
  if (request.tty && !extension?.capabilities.pty) {
    throw new SandboxerError('SBX_UNSUPPORTED', `${sandbox.extensionId} has no terminal.`, { field: 'tty' });
  }
  const startedAt = use.deps.clock.now();
  const explain = (error: unknown) => explainLoss(use.deps, sandbox, error);
  const input = inputOf(request, interactive);
  const env = await environment(use, sandbox.uid, sandbox.generation, request.env);
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
  const inactive = use.activity.begin(sandbox.uid);
  const ended = () => {
    inactive();
    use.sessions.running.delete(key);
  };
  if (!request.background) use.sessions.running.set(key, process);
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

/** Lets go of a process in the background as soon as it was given its input. Nobody has to wait for that. */
export async function leaveInBackground({ process, fed }: Started): Promise<void> {
  if (fed === null) return process.detach();
  // What nobody reads here would hold the program up; it is kept for whoever asks for it.
  const readAlong = async () => {
    for await (const chunk of process.output) if (chunk.stream !== 'gap') chunk.done?.();
  };
  void Promise.race([fed, readAlong().catch(() => {})]).then(() => process.detach().catch(() => {}));
}

async function infoOf(session: SandboxSession, processId: string, options: AbortableOptions) {
  const all = (await session.processes?.(options)) ?? [];
  return all.find(({ process_id }) => process_id === processId);
}

export async function attachToProcess(
  use: Use,
  caller: Caller,
  id: string,
  processId: string,
  from: number,
  signal?: AbortSignal,
): Promise<Followed> {
  const { sandbox, session } = await openSandbox(use, caller, id, false);
  if (!session.attach)
    throw new SandboxerError('SBX_UNSUPPORTED', `${sandbox.extensionId} keeps no background processes.`);
  const options = signal ? { signal } : {};
  const explain = (error: unknown) => explainLoss(use.deps, sandbox, error);
  try {
    const process = await session.attach(processId, from, options);
    const info = await infoOf(session, processId, options).catch(() => undefined);
    return {
      process,
      startedAt: info ? Date.parse(info.started_at) : use.deps.clock.now(),
      endedAt: info?.ended_at === undefined ? null : Date.parse(info.ended_at),
      explain,
    };
  } catch (error) {
    throw await explain(error);
  }
}

export async function listProcesses(
  use: Use,
  caller: Caller,
  id: string,
  service?: string,
): Promise<ProcessInfo[]> {
  const { session } = await openSandbox(use, caller, id, false, service);
  return session.processes ? session.processes() : [];
}
