import { SandboxerError } from '../contract/errors.ts';
import type { ExecRequest, ProcessInfo } from '../contract/exec.ts';
import type { Caller } from '../core/caller.ts';
import { startDirectory } from '../core/inputs.ts';
import type { SandboxDocuments } from '../core/sandbox.ts';
import type { SandboxProcess } from '../core/session.ts';
import type { Use } from './use-sandbox.ts';
import { beginUse, openSandbox } from './use-sandbox.ts';

export interface StartedProcess {
  readonly process: SandboxProcess;
  readonly sandboxUid: string;
  readonly startedAt: number;
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

/**
 * Starts a program. `interactive` keeps its input open for the caller to write to; otherwise it gets the request's
 * `stdin` and then end-of-file.
 */
export async function execInSandbox(
  use: Use,
  caller: Caller,
  id: string,
  request: ExecRequest,
  interactive: boolean,
  signal?: AbortSignal,
): Promise<StartedProcess> {
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
  const process = await session.spawn(
    {
      argv: argvOf(request.command),
      env: await environment(use, sandbox.uid, sandbox.generation, request.env),
      cwd: request.cwd ?? startDirectory(sandbox, extension),
      user: request.user ?? null,
      timeoutSeconds: request.timeout ?? null,
      terminal: request.tty ?? null,
      stdin: interactive || request.stdin !== undefined,
      background: request.background,
    },
    signal ? { signal } : {},
  );
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
  if (!interactive && request.stdin !== undefined) {
    void feed(process, Buffer.from(request.stdin, request.stdin_encoding));
  }
  return { process, sandboxUid: sandbox.uid, startedAt };
}

/** A program that stops reading ends the feeding; that is its business, not an error. */
async function feed(process: SandboxProcess, input: Uint8Array): Promise<void> {
  try {
    const piece = 65_536;
    for (let at = 0; at < input.length; at += piece) await process.write(input.subarray(at, at + piece));
    await process.endInput();
  } catch {}
}

export async function attachToProcess(
  use: Use,
  caller: Caller,
  id: string,
  processId: string,
  from: number,
  signal?: AbortSignal,
): Promise<SandboxProcess> {
  const { sandbox, session } = await openSandbox(use, caller, id, false);
  if (!session.attach)
    throw new SandboxerError('SBX_UNSUPPORTED', `${sandbox.extensionId} keeps no background processes.`);
  return session.attach(processId, from, signal ? { signal } : {});
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
