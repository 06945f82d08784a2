import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { visibleWorkspace } from '../../core/tenancy/caller.ts';

/**
 * Finds a snapshot that the caller may see; one of another workspace counts as not found, and a deleted one unless it is asked
 * for.
 */
export async function findSnapshot(
  tx: Tx,
  caller: Caller,
  id: string,
  deletedToo = false,
): Promise<SnapshotRecord> {
  const snapshot = await tx.snapshots.get(id);
  const workspace = visibleWorkspace(caller);
  const there = snapshot && (deletedToo || snapshot.state !== 'deleted');
  if (there && (workspace === null || snapshot.workspaceId === workspace)) return snapshot;
  throw new SandboxerError('SBX_NOT_FOUND', `There is no snapshot "${id}".`, {
    remedy: 'List the snapshots to see which exist.',
  });
}
