import { SandboxerError } from '../../contract/errors/errors.ts';
import { isSettledState } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { SandboxFiles, SandboxServices, SandboxSession } from '../../core/ports/session.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import { recordBegun } from '../requests/audit.ts';
import { findSandbox } from '../requests/find-sandbox.ts';

export interface OpenSandbox {
  readonly sandbox: SandboxRecord;
  readonly session: SandboxSession;
}

export interface BegunUse extends OpenSandbox {
  /** Resolves when the use and its caller are on record. No result of the use may be shown before that. */
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

interface SandboxUse {
  readonly id: string;
  readonly counts: boolean;
  readonly service?: string | undefined;
}

/**
 * Opens the channel into a sandbox that can be used now, or into one of its services. `counts` says whether this is use in the
 * sense of idleness.
 */
export async function openSandbox(
  control: Control,
  caller: Caller,
  { id, counts, service }: SandboxUse,
): Promise<OpenSandbox> {
  requireScope(caller, counts ? 'sandboxes' : 'read');
  const opened = await channelInto(control, caller, id, service);
  if (counts) await control.activity.touch(opened.sandbox);
  return opened;
}

interface BeginUse {
  readonly id: string;
  readonly service?: string | undefined;
}

/** As `openSandbox` for what counts as use, for a caller that can begin while the use is being written. */
export async function beginUse(
  control: Control,
  caller: Caller,
  { id, service }: BeginUse,
): Promise<BegunUse> {
  requireScope(caller, 'sandboxes');
  const opened = await channelInto(control, caller, id, service);
  const writes = [control.activity.touch(opened.sandbox), recordBegun(control, caller)];
  const noted = Promise.all(writes).then(() => {});
  noted.catch(() => {});
  return { ...opened, noted };
}

const isUsable = ({ state }: SandboxRecord) => state === 'ready' || state === 'active';

/**
 * Reads the row. A state that is not on the disk yet is enough to go on, which reveals nothing; a refusal must be on the disk
 * first.
 */
async function usableSandbox({ store }: Control, caller: Caller, id: string): Promise<SandboxRecord> {
  const find = (tx: Tx) => findSandbox(tx, caller, id);
  const now = await store.read('use', find, { answersEarly: true }).catch(() => null);
  if (now && isUsable(now)) return now;
  const sandbox = await store.read('refuse', find);
  if (isUsable(sandbox)) return sandbox;
  throw refusal(sandbox);
}

async function channelInto(
  control: Control,
  caller: Caller,
  id: string,
  service?: string,
): Promise<OpenSandbox> {
  const sandbox = await usableSandbox(control, caller, id);
  const whole = await control.sessions.of(sandbox);
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

interface OpenFiles {
  readonly id: string;
  readonly writes: boolean;
  readonly service?: string | undefined;
}

/** The files of a sandbox; only writing counts as use. */
export async function openFiles(
  control: Control,
  caller: Caller,
  { id, writes, service }: OpenFiles,
): Promise<SandboxFiles> {
  const { sandbox, session } = await openSandbox(control, caller, { id, counts: writes, service });
  if (!session.files) throw unsupported(sandbox, 'files');
  return session.files;
}

interface DialPort {
  readonly id: string;
  readonly port: number;
  readonly signal?: AbortSignal | undefined;
}

/** A byte stream to a port inside. Looking at a preview is not use. */
export async function dialPort(control: Control, caller: Caller, { id, port, signal }: DialPort) {
  const { sandbox, session } = await openSandbox(control, caller, { id, counts: false });
  if (!session.dial) throw unsupported(sandbox, 'ports');
  return session.dial(port, signal ? { signal } : {});
}
