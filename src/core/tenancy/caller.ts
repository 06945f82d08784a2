import { SandboxerError } from '../../contract/errors/errors.ts';
import type { KeyScope } from '../../contract/tenancy/tenancy.ts';
import type { Actor } from '../../contract/values/state.ts';
import type { AuditTrail } from './audit.ts';

/** The source of a request, after authentication. */
export interface Caller {
  readonly actor: Actor;
  /** The workspace that new resources belong to. */
  readonly workspaceId: string;
  readonly orgId: string;
  /** `null` for the local administrator on the unix socket. */
  readonly keyId: string | null;
  /** The number of the key; left out for the local administrator. */
  readonly keyNumber?: number;
  /** When the key ends, as it was when the request came; `null` or left out: never. */
  readonly keyEndsAt?: number | null;
  /** The line of the key: the limits of rate, streams and memory are one for all its keys. */
  readonly limitLine?: string;
  readonly scopes: ReadonlySet<KeyScope>;
  /** Whether the caller is on the unix socket of this machine: the only caller whose paths the server may read. */
  readonly local: boolean;
  /** Chose one workspace to act in: the `server` scope reaches over no other then. */
  readonly narrowed?: boolean;
  readonly trail?: AuditTrail;
}

/** Names the limits of rate, streams and memory that apply: those of a line of keys, or `null` for the local administrator. */
export function limitedLine({ keyId, limitLine }: Pick<Caller, 'keyId' | 'limitLine'>): string | null {
  return limitLine ?? keyId;
}

/** Returns the workspace that a caller sees, or `null` for all with the `server` scope. */
export function visibleWorkspace(caller: Caller): string | null {
  return caller.scopes.has('server') && caller.narrowed !== true ? null : caller.workspaceId;
}

export function requireScope(caller: Caller, scope: KeyScope): void {
  if (caller.scopes.has(scope) || caller.scopes.has('server')) return;
  throw new SandboxerError('SBX_FORBIDDEN', `This needs the scope "${scope}".`, {
    remedy: `Use a key with the scope "${scope}".`,
  });
}
