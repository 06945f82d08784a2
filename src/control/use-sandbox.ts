import { SandboxerError } from '../contract/errors.ts';
import type { Caller } from '../core/caller.ts';
import { requireScope } from '../core/caller.ts';
import { isSettledState } from '../core/lifecycle.ts';
import type { SandboxRecord } from '../core/sandbox.ts';
import type { SandboxFiles, SandboxSession } from '../core/session.ts';
import type { Activity } from './activity.ts';
import type { ControlDeps } from './deps.ts';
import { findSandbox } from './find-sandbox.ts';
import type { Sessions } from './sessions.ts';

export interface Use {
  readonly deps: ControlDeps;
  readonly sessions: Sessions;
  readonly activity: Activity;
}

export interface OpenSandbox {
  readonly sandbox: SandboxRecord;
  readonly session: SandboxSession;
}

function refusal(sandbox: SandboxRecord): SandboxerError {
  const { id, state } = sandbox;
  if (state === 'paused') {
    return new SandboxerError('SBX_INVALID_STATE', `The sandbox "${id}" is paused.`, {
      remedy: 'Resume it first.',
    });
  }
  if (!isSettledState(state)) {
    return new SandboxerError('SBX_INVALID_STATE', `The sandbox "${id}" is ${state}.`, {
      retryable: true,
      remedy: 'Wait until it is ready.',
    });
  }
  return new SandboxerError('SBX_GONE', `The sandbox "${id}" is ${state}.`);
}

/** The channel into a sandbox that can be used now. `counts` says whether this is use in the sense of idleness. */
export async function openSandbox(
  use: Use,
  caller: Caller,
  id: string,
  counts: boolean,
): Promise<OpenSandbox> {
  requireScope(caller, counts ? 'sandboxes' : 'read');
  const sandbox = await use.deps.store.read('use', (tx) => findSandbox(tx, caller, id));
  if (sandbox.state !== 'ready' && sandbox.state !== 'active') throw refusal(sandbox);
  const session = await use.sessions.of(sandbox);
  if (counts) await use.activity.touch(sandbox);
  return { sandbox, session };
}

function unsupported(sandbox: SandboxRecord, what: string): SandboxerError {
  return new SandboxerError('SBX_UNSUPPORTED', `${sandbox.extensionId} has no ${what}.`, {
    backend: sandbox.extensionId as string,
  });
}

/** The files of a sandbox; only writing counts as use. */
export async function openFiles(
  use: Use,
  caller: Caller,
  id: string,
  writes: boolean,
): Promise<SandboxFiles> {
  const { sandbox, session } = await openSandbox(use, caller, id, writes);
  if (!session.files) throw unsupported(sandbox, 'files');
  return session.files;
}

/** A byte stream to a port inside. Looking at a preview is not use. */
export async function dialPort(use: Use, caller: Caller, id: string, port: number, signal?: AbortSignal) {
  const { sandbox, session } = await openSandbox(use, caller, id, false);
  if (!session.dial) throw unsupported(sandbox, 'ports');
  return session.dial(port, signal ? { signal } : {});
}
