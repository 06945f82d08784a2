import { SandboxerError } from '../../contract/errors/errors.ts';
import { isSettledState } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { SandboxFiles, SandboxServices, SandboxSession } from '../../core/ports/session.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Sessions } from '../backends/sessions.ts';
import type { Activity } from '../lifecycle/activity.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { recordBegun } from '../requests/audit.ts';
import { findSandbox } from '../requests/find-sandbox.ts';

export interface Use {
  readonly deps: ControlPorts;
  readonly sessions: Sessions;
  readonly activity: Activity;
}

export interface OpenSandbox {
  readonly sandbox: SandboxRecord;
  readonly session: SandboxSession;
}

export interface BegunUse extends OpenSandbox {
  /** Resolves when the use and who began it are on record. Nobody may be told of what it led to before that. */
  readonly noted: Promise<void>;
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

/**
 * The channel into a sandbox that can be used now, or into one of its services. `counts` says whether this is use in the
 * sense of idleness.
 */
export async function openSandbox(
  use: Use,
  caller: Caller,
  id: string,
  counts: boolean,
  service?: string,
): Promise<OpenSandbox> {
  requireScope(caller, counts ? 'sandboxes' : 'read');
  const opened = await channelInto(use, caller, id, service);
  if (counts) await use.activity.touch(opened.sandbox);
  return opened;
}

/** As `openSandbox` for what counts as use, for a caller who can begin while that is being written. */
export async function beginUse(use: Use, caller: Caller, id: string, service?: string): Promise<BegunUse> {
  requireScope(caller, 'sandboxes');
  const opened = await channelInto(use, caller, id, service);
  const writes = [use.activity.touch(opened.sandbox), recordBegun(use.deps, caller)];
  const noted = Promise.all(writes).then(() => {});
  noted.catch(() => {});
  return { ...opened, noted };
}

const isUsable = ({ state }: SandboxRecord) => state === 'ready' || state === 'active';

/** That it can be used is told to nobody and need not be on the disk; that it cannot is, and must. */
async function usableSandbox({ deps: { store } }: Use, caller: Caller, id: string): Promise<SandboxRecord> {
  const find = (tx: Tx) => findSandbox(tx, caller, id);
  const now = await store.read('use', find, { answersEarly: true }).catch(() => null);
  if (now && isUsable(now)) return now;
  const sandbox = await store.read('refuse', find);
  if (isUsable(sandbox)) return sandbox;
  throw refusal(sandbox);
}

async function channelInto(use: Use, caller: Caller, id: string, service?: string): Promise<OpenSandbox> {
  const sandbox = await usableSandbox(use, caller, id);
  const whole = await use.sessions.of(sandbox);
  const session = service === undefined ? whole : servicesOf(sandbox, whole, service).session(service);
  return { sandbox, session };
}

/** The services of a sandbox, if this is one of them. */
export function servicesOf(
  sandbox: SandboxRecord,
  { services }: SandboxSession,
  name: string | undefined,
): SandboxServices {
  if (services === undefined)
    throw new SandboxerError('SBX_UNSUPPORTED', `${sandbox.extensionId} has no services.`, {
      backend: sandbox.extensionId as string,
      field: 'service',
      remedy: 'Leave the service out.',
    });
  if (name === undefined || services.names.includes(name)) return services;
  const names = services.names.join(', ');
  throw new SandboxerError('SBX_SERVICE_NOT_FOUND', `There is no service "${name}": there are ${names}.`, {
    field: 'service',
    remedy: `Name one of ${names}.`,
    members: { services: services.names },
  });
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
  service?: string,
): Promise<SandboxFiles> {
  const { sandbox, session } = await openSandbox(use, caller, id, writes, service);
  if (!session.files) throw unsupported(sandbox, 'files');
  return session.files;
}

/** A byte stream to a port inside. Looking at a preview is not use. */
export async function dialPort(use: Use, caller: Caller, id: string, port: number, signal?: AbortSignal) {
  const { sandbox, session } = await openSandbox(use, caller, id, false);
  if (!session.dial) throw unsupported(sandbox, 'ports');
  return session.dial(port, signal ? { signal } : {});
}
