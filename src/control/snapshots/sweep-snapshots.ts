import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import { pendingOperation } from '../../core/lifecycle/sandbox.ts';
import { after } from '../../core/ports/clock.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { contextFor } from '../backends/backend-context.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { snapshotEvent } from './snapshot-event.ts';

const BATCH = 50;
const TIMEOUT_MS = 60_000;

async function removeAtBackend(deps: ControlPorts, snapshot: SnapshotRecord): Promise<void> {
  const extension = deps.extensions.get(snapshot.extensionId);
  if (!extension?.deleteSnapshot) return;
  const controller = new AbortController();
  const cancel = after(deps.clock, TIMEOUT_MS, () =>
    controller.abort(new Error('The backend took too long to delete a snapshot.')),
  );
  const spec = { snapshotId: snapshot.id, name: snapshot.name, owner: deps.owner };
  try {
    await extension.deleteSnapshot(
      snapshot.ref,
      spec,
      await contextFor(deps, snapshot.hostId, controller.signal, snapshot.providerKeyId),
    );
  } finally {
    cancel();
  }
}

/**
 * Deleted before it is taken, it would stay at the backend for ever: its sandbox's operation comes first, and where that
 * was given up on the way, the end of its source, after which the request can do nothing.
 */
async function isBeingTaken(tx: Tx, snapshot: SnapshotRecord): Promise<boolean> {
  const source = await tx.sandboxes.get(snapshot.sandboxUid);
  if (source?.generation !== snapshot.generation) return false;
  if (pendingOperation(source)?.snapshotId === snapshot.id) return true;
  const ending = source.state === 'expired' || source.state === 'destroying';
  return snapshot.ref === null && ending;
}

/** Deletes at the backend the snapshots that are marked for it or past their time. A deletion that fails is tried again. */
export async function sweepSnapshots(deps: ControlPorts, only: string | null = null): Promise<number> {
  const now = deps.clock.now();
  const due = await deps.store.read('due-snapshots', async (tx) => {
    const marked =
      only === null ? await tx.snapshots.dueDeletion(now, BATCH) : [await tx.snapshots.get(only)];
    const removable: SnapshotRecord[] = [];
    for (const snapshot of marked) {
      // The import of a file is not journalled, so no other process can continue it: past its time it was given up.
      const isGivenUp = snapshot?.cause === 'import' && (snapshot.expiresAt ?? now) <= now;
      if (
        !snapshot ||
        (snapshot.state === 'creating' && !isGivenUp) ||
        (only !== null && snapshot.state !== 'deleting')
      )
        continue;
      if (!(await isBeingTaken(tx, snapshot))) removable.push(snapshot);
    }
    return removable;
  });
  let deleted = 0;
  for (const snapshot of due) {
    try {
      await removeAtBackend(deps, snapshot);
    } catch (error) {
      deps.log.warn(
        { err: error, snapshot: snapshot.id },
        'a snapshot could not be deleted; it will be tried again',
      );
      continue;
    }
    await deps.store.transaction('snapshot-deleted', async (tx) => {
      const current = await tx.snapshots.get(snapshot.id);
      if (!current || current.state === 'deleted') return;
      const now = deps.clock.now();
      const next = {
        ...current,
        state: 'deleted' as const,
        deletedAt: now,
        eventSeq: current.eventSeq + 1,
      };
      await tx.snapshots.update(next);
      await tx.events.append([snapshotEvent(deps, next, { type: 'snapshot.deleted', actor: 'atm', now })]);
    });
    deleted += 1;
  }
  return deleted;
}
