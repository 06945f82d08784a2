import type { Consumer } from '../../contract/sandboxes/sandbox.ts';
import type { Actor } from '../../contract/values/state.ts';

/** An audit record: caller, action, target and outcome. Never a secret, an environment or a body. */
export interface AuditDraft {
  readonly at: number;
  /** The workspace that it happened in. */
  readonly workspaceId: string;
  /** `null` for the local administrator on the unix socket. */
  readonly keyId: string | null;
  readonly actor: Actor;
  readonly consumer: Consumer;
  /** The operation, as the OpenAPI document names it. */
  readonly action: string;
  /** Ids from the path, or of what was made; empty when there is neither. */
  readonly target: string;
  /** `ok`, or the code of the error. */
  readonly outcome: string;
  readonly requestId: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface AuditRecord extends AuditDraft {
  readonly seq: number;
}

/** The trail of one request: a verb that writes its record in its own transaction notes it here, after the commit. */
export interface AuditTrail {
  readonly requestId: string;
  /** The operation, as the OpenAPI document names it. */
  readonly action: string;
  /** The ids in the path, joined. */
  target: string;
  /** The id of what was made, once that is known. */
  made: string | null;
  consumer: Consumer;
  written: boolean;
  /** Has the records of earlier requests written before the next one: the log is in order. */
  writeEarlier(): void;
}
