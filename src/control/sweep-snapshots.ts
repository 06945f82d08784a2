import type { SnapshotRecord } from '../core/snapshot.ts';
import type { ControlDeps } from './deps.ts';
import { DONE } from './done.ts';
import { contextFor } from './perform-step.ts';
import { snapshotEvent } from './snapshot-event.ts';

const BATCH = 50;
const TIMEOUT_MS = 60_000;

async function removeAtBackend(deps: ControlDeps, snapshot: SnapshotRecord): Promise<void> {
  const extension = deps.extensions.get(snapshot.extensionId);
  if (!extension?.deleteSnapshot) return;
  const controller = new AbortController();
  const finished = new AbortController();
  deps.clock.sleep(TIMEOUT_MS, finished.signal).then(
    () => controller.abort(new Error('The backend took too long to delete a snapshot.')),
    () => {},
  );
  const spec = { snapshotId: snapshot.id, name: snapshot.name, owner: deps.owner };
  try {
    await extension.deleteSnapshot(snapshot.ref, spec, contextFor(deps, snapshot.hostId, controller.signal));
  } finally {
    finished.abort(DONE);
  }
}

/** Deletes at the backend what is marked for it or past its time. What fails stays marked and is tried again. */
export async function sweepSnapshots(deps: ControlDeps, only: string | null = null): Promise<number> {
  const now = deps.clock.now();
  const due = await deps.store.read('due-snapshots', async (tx) => {
    if (only === null) return tx.snapshots.dueDeletion(now, BATCH);
    const snapshot = await tx.snapshots.get(only);
    return snapshot?.state === 'deleting' ? [snapshot] : [];
  });
  let deleted = 0;
  for (const snapshot of due) {
    // Still being taken: its sandbox's operation decides about it first.
    if (snapshot.state === 'creating') continue;
    try {
      await removeAtBackend(deps, snapshot);
    } catch (error) {
      deps.log.warn({ err: error, snapshot: snapshot.id }, 'a snapshot could not be deleted; it will be tried again');
      continue;
    }
    await deps.store.transaction('snapshot-deleted', async (tx) => {
      const current = await tx.snapshots.get(snapshot.id);
      if (!current || current.state === 'deleted') return;
      const next = { ...current, state: 'deleted' as const, eventSeq: current.eventSeq + 1 };
      await tx.snapshots.update(next);
      await tx.events.append([snapshotEvent(deps, next, 'snapshot.deleted', 'atm', deps.clock.now())]);
    });
    deleted += 1;
  }
  return deleted;
}
