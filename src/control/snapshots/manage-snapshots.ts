import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import type { Page } from '../../core/ports/store/page.ts';
import type { SnapshotQuery } from '../../core/ports/store/snapshot-store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope, visibleWorkspace } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { findSnapshot } from './find-snapshot.ts';
import { snapshotExpiry } from './new-snapshot.ts';
import { sweepSnapshots } from './sweep-snapshots.ts';

export async function getSnapshot(
  deps: ControlPorts,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<SnapshotRecord> {
  requireScope(caller, 'read');
  return deps.store.read('get-snapshot', (tx) => findSnapshot(tx, caller, id));
}

export async function listSnapshots(
  deps: ControlPorts,
  caller: Caller,
  query: Omit<SnapshotQuery, 'workspaceId'>,
): Promise<Page<SnapshotRecord>> {
  requireScope(caller, 'read');
  return deps.store.read('list-snapshots', (tx) =>
    tx.snapshots.list({ ...query, workspaceId: visibleWorkspace(caller) }),
  );
}

const idOf = ({ id }: SnapshotRecord) => id;

interface RenameSnapshot {
  readonly id: string;
  readonly name: string | null;
}

export async function renameSnapshot(
  deps: ControlPorts,
  caller: Caller,
  { id, name }: RenameSnapshot,
): Promise<SnapshotRecord> {
  requireScope(caller, 'sandboxes');
  const recorded = { label: 'rename-snapshot', action: 'renameSnapshot', target: idOf };
  return recordedTransaction(deps, caller, recorded, async (tx) => {
    const snapshot = await findSnapshot(tx, caller, id);
    const { createdAt, expiresAt } = snapshot;
    // A name keeps a snapshot that retention would end; an expiry that a request set stays.
    const byRetention = snapshotExpiry(deps, { name: snapshot.name, retainSeconds: null }, createdAt);
    const kept = byRetention !== null && expiresAt === byRetention && name !== null;
    return tx.snapshots.update({ ...snapshot, name, expiresAt: kept ? null : expiresAt });
  });
}

/** Deletes a snapshot. Idempotent. The row says `deleting` until the backend confirmed it. */
export async function deleteSnapshot(
  deps: ControlPorts,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<SnapshotRecord> {
  requireScope(caller, 'sandboxes');
  const recorded = { label: 'delete-snapshot', action: 'deleteSnapshot', target: idOf };
  const marked = await recordedTransaction(deps, caller, recorded, async (tx) => {
    const snapshot = await findSnapshot(tx, caller, id, true);
    if (snapshot.state === 'creating') {
      throw new SandboxerError('SBX_INVALID_STATE', 'The snapshot is still being taken.', {
        retryable: true,
        remedy: 'Wait until it is available, or destroy its sandbox.',
      });
    }
    const gone = snapshot.state === 'deleting' || snapshot.state === 'deleted';
    return gone ? snapshot : tx.snapshots.update({ ...snapshot, state: 'deleting' });
  });
  await sweepSnapshots(deps, marked.id);
  return (await deps.store.read('get-snapshot', (tx) => tx.snapshots.get(id))) ?? marked;
}
