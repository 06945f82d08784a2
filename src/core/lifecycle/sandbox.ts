import type { ErrorIssue } from '../../contract/errors/errors.ts';
import type { Scope } from '../../contract/profiles/profile.ts';
import type { RoutePlan } from '../../contract/routing/route.ts';
import type { Consumer, CreateSandboxRequest, Reachability } from '../../contract/sandboxes/sandbox.ts';
import type { Json } from '../../contract/values/json.ts';
import type { Actor, Creation, PauseKind, SandboxState } from '../../contract/values/state.ts';
import type { Handle } from '../ports/extension.ts';
import type { Recipe } from '../recipe/recipe.ts';
import type { TreeInput } from '../recipe/tree-input.ts';

/** A worker's exclusive right to act on a sandbox's backend, until it is released or runs out. */
export interface Lease {
  /** The control-plane process that holds it. */
  readonly owner: string;
  /** Different for each claim: every write checks that this very lease is still held. */
  readonly token: string;
  readonly until: number;
}

/**
 * A backend operation that a request journalled and a worker carries out: it survives a crash between the two. The last operation
 * stays on the row when it is finished, so that the request can report its result.
 */
export interface SandboxOperation {
  readonly kind: 'pause' | 'resume' | 'snapshot' | 'extend';
  readonly id: string;
  readonly requestedAt: number;
  readonly actor: Actor;
  /** The snapshot row that a `snapshot` operation fills. */
  readonly snapshotId: string | null;
  readonly tries: number;
  /** For `extend` before `ready`: the earliest of the deadlines that the backend may have got. */
  readonly earliestDeadlineAt?: number;
  readonly finishedAt: number | null;
  /** Why the operation failed; `null` when it succeeded or is not finished. */
  readonly error: { readonly code: string; readonly detail: string; readonly remedy?: string } | null;
}

export interface SandboxFailureRecord {
  readonly code: string;
  readonly detail: string;
  readonly remedy: string;
  readonly at: number;
  /** Whether the attempts left something at backends; left out in rows of earlier versions. */
  readonly creation?: Creation;
  /** The backend of the attempt that failed; left out when the failure sums up several. */
  readonly backend?: string;
  readonly field?: string;
  readonly issues?: ErrorIssue[];
}

/** The hot row of a sandbox. Times are milliseconds since 1970. */
export interface SandboxRecord {
  /** Ours, unique for ever; what is stamped on backend objects derives from it. */
  readonly uid: string;
  /** Public; chosen by the client or equal to `uid`. Unique within the workspace among rows that are not destroyed. */
  readonly id: string;
  readonly workspaceId: string;
  readonly orgId: string;
  readonly generation: number;
  /** Compare-and-set: every update names the version it read. */
  readonly version: number;
  readonly state: SandboxState;
  readonly stateSince: number;
  readonly pauseKind: PauseKind | null;
  readonly profileId: string;
  readonly profileVersion: string;
  readonly fingerprint: string;
  /** Hash of the request as it was sent: a repeated client-chosen id must carry the same one. */
  readonly requestDigest: string;
  readonly scope: Scope;
  /** Set while the sandbox may be reused by scope: scope key and fingerprint in one. Unique within the workspace. */
  readonly reuseKey: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly consumer: Consumer;
  readonly actor: Actor;
  readonly keyId: string | null;
  readonly elevated: boolean;
  readonly exposedSecrets: readonly string[];
  readonly createdAt: number;
  readonly readyAt: number | null;
  readonly lastActivityAt: number | null;
  readonly deadlineAt: number;
  readonly maxDeadlineAt: number;
  readonly idleReapSeconds: number | null;
  /** When idleness ends the sandbox; `null` while it cannot (no limit, paused, not established). */
  readonly idleDeadlineAt: number | null;
  /** The winning attempt of this generation, once there is one. */
  readonly attempt: number | null;
  readonly extensionId: string | null;
  readonly hostId: string | null;
  readonly isolation: string | null;
  /** The region of the host or backend it is on; `null` where none is known. */
  readonly region: string | null;
  readonly handle: Handle | null;
  readonly reachability: Reachability | null;
  readonly notes: readonly string[];
  readonly failure: SandboxFailureRecord | null;
  readonly operation: SandboxOperation | null;
  /** Destroyed on purpose to start the next generation. */
  readonly recreating: boolean;
  readonly lease: Lease | null;
  /** When a worker should look at the row next; `null` when there is nothing to do. */
  readonly workDueAt: number | null;
  readonly holdId: string | null;
  readonly meterId: string | null;
  /** Number of the last event about this sandbox: orders them. */
  readonly eventSeq: number;
  /** The file trees it starts with, as they were resolved when it was asked for. */
  readonly inputs: readonly TreeInput[];
}

/** The source of a sandbox's file system. */
export type SandboxOrigin =
  | { readonly kind: 'recipe' }
  | {
      readonly kind: 'snapshot';
      readonly snapshotId: string;
      readonly extensionId: string;
      readonly ref: Json;
    }
  | {
      readonly kind: 'fork';
      readonly sourceUid: string;
      readonly extensionId: string;
      readonly hostId: string | null;
    };

/** The cold part, written once per generation. */
export interface SandboxDocuments {
  readonly uid: string;
  readonly generation: number;
  readonly request: CreateSandboxRequest;
  readonly recipe: Recipe;
  readonly plan: RoutePlan;
  readonly origin: SandboxOrigin;
}

/** The operation that still waits to be carried out. */
export function pendingOperation(sandbox: SandboxRecord): SandboxOperation | null {
  return sandbox.operation?.finishedAt === null ? sandbox.operation : null;
}
