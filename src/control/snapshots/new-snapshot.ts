import type { SnapshotCause } from '../../contract/assets/snapshot.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Actor } from '../../contract/values/state.ts';
import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import { attemptIdOf } from '../../core/lifecycle/attempt.ts';
import type { SandboxDocuments, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

export interface SnapshotWish {
  readonly cause: SnapshotCause;
  readonly actor: Actor;
  readonly name: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** Kept so long; `null` leaves it to the workspace's retention. */
  readonly retainSeconds: number | null;
}

/** Returns when the snapshot expires: as requested; else never if it has a name, and by retention if it has none. */
export function snapshotExpiry(
  deps: ControlPorts,
  wish: Pick<SnapshotWish, 'name' | 'retainSeconds'>,
  now: number,
): number | null {
  if (wish.retainSeconds !== null) return now + wish.retainSeconds * 1000;
  const { keepSnapshotsMs = null } = deps.settings;
  return wish.name === null && keepSnapshotsMs !== null ? now + keepSnapshotsMs : null;
}

/** The row of a snapshot that is about to be taken of a living sandbox. */
export async function newSnapshot(
  tx: Tx,
  deps: ControlPorts,
  sandbox: SandboxRecord,
  wish: SnapshotWish,
): Promise<SnapshotRecord> {
  const extension = deps.extensions.get(sandbox.extensionId as string);
  if (!extension?.snapshot) {
    throw new SandboxerError('SBX_UNSUPPORTED', `${sandbox.extensionId} takes no snapshots.`, {
      backend: sandbox.extensionId as string,
    });
  }
  const { recipe } = (await tx.sandboxes.documents(sandbox.uid, sandbox.generation)) as SandboxDocuments;
  const attemptId = attemptIdOf(sandbox.uid, sandbox.generation, sandbox.attempt as number);
  const attempt = extension.checkKey === undefined ? null : await tx.attempts.get(attemptId);
  const now = deps.clock.now();
  return {
    id: deps.ids.next('snap'),
    workspaceId: sandbox.workspaceId,
    version: 1,
    name: wish.name,
    sandboxUid: sandbox.uid,
    sandboxId: sandbox.id,
    generation: sandbox.generation,
    profileId: sandbox.profileId,
    profileVersion: sandbox.profileVersion,
    recipe,
    extensionId: extension.header.id,
    hostId: sandbox.hostId,
    kind: extension.header.capabilities.snapshot,
    state: 'creating',
    ref: null,
    sizeBytes: null,
    labels: wish.labels,
    actor: wish.actor,
    consumer: sandbox.consumer,
    createdAt: now,
    expiresAt: snapshotExpiry(deps, wish, now),
    eventSeq: 1,
    deletedAt: null,
    cause: wish.cause,
    digest: null,
    providerKeyId: attempt?.providerKeyId ?? null,
  };
}
