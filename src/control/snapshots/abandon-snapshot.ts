import type { Tx } from '../../core/ports/store/store.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { snapshotEvent } from './snapshot-event.ts';

/** Ends a snapshot whose sandbox ended first. The backend may have made it or not: it is swept by its id. */
export async function abandonSnapshot(
  tx: Tx,
  deps: ControlPorts,
  snapshotId: string,
  now: number,
): Promise<void> {
  const snapshot = await tx.snapshots.get(snapshotId);
  if (snapshot?.state !== 'creating') return;
  const next = { ...snapshot, state: 'deleting' as const, eventSeq: snapshot.eventSeq + 1 };
  await tx.snapshots.update(next);
  await tx.events.append([
    snapshotEvent(deps, next, {
      type: 'snapshot.failed',
      actor: 'atm',
      now,
      details: {
        reason: 'the sandbox ended before it was taken',
      },
    }),
  ]);
}
