import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

const PAGE = 500;

/**
 * Refuses one more snapshot when the workspace has reached its number or its bytes. A checkpoint is never refused: it saves work.
 */
export async function requireSnapshotRoom(tx: Tx, deps: ControlPorts, workspaceId: string): Promise<void> {
  const { maxSnapshots = null, maxSnapshotBytes = null } = deps.settings;
  if (maxSnapshots === null && maxSnapshotBytes === null) return;
  const { count, bytes } = await tx.snapshots.usage(workspaceId);
  const reached =
    maxSnapshots !== null && count >= maxSnapshots
      ? `its ${maxSnapshots} snapshots`
      : maxSnapshotBytes !== null && bytes >= maxSnapshotBytes
        ? `its ${Math.floor(maxSnapshotBytes / 1_048_576)} MiB of snapshots`
        : null;
  if (reached === null) return;
  throw new SandboxerError('SBX_QUOTA_EXCEEDED', `The workspace has ${reached} already.`, {
    remedy: 'Delete snapshots that are no longer needed, or have the limit raised.',
    creation: 'not_created',
  });
}

/**
 * Marks the oldest snapshots for deletion until the workspace has no more than it keeps. Those with a name or a time of their own
 * are neither counted nor touched.
 */
export async function thinSnapshots(tx: Tx, deps: ControlPorts, workspaceId: string): Promise<void> {
  const { keepSnapshots = null } = deps.settings;
  if (keepSnapshots === null) return;
  let kept = 0;
  let cursor: string | null = null;
  const surplus: SnapshotRecord[] = [];
  do {
    const page = await tx.snapshots.list({ workspaceId, cursor, limit: PAGE });
    for (const snapshot of page.items) {
      const byRetention = snapshot.name === null && snapshot.state === 'available';
      if (byRetention && ++kept > keepSnapshots) surplus.push(snapshot);
    }
    cursor = page.nextCursor;
  } while (cursor !== null);
  for (const snapshot of surplus) await tx.snapshots.update({ ...snapshot, state: 'deleting' });
}
