import { isEstablished } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxDocuments, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { pendingOperation } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Control } from '../control.ts';
import type { TakenUp } from '../lifecycle/driver.ts';
import { SandboxEdit } from '../lifecycle/edit/sandbox-edit.ts';
import { newOperation } from '../lifecycle/operation.ts';
import { newSnapshot } from '../snapshots/new-snapshot.ts';
import { snapshotEvent } from '../snapshots/snapshot-event.ts';

/** Whether a sandbox that is due may end now, and what was kept of it. */
export type Checkpoint =
  | { readonly kind: 'end'; readonly snapshotId: string | null }
  | { readonly kind: 'begun'; readonly taken: TakenUp }
  | { readonly kind: 'wait'; readonly operationId: string };

const END: Checkpoint = { kind: 'end', snapshotId: null };

/** The snapshot that was taken for this end: nothing was done in the sandbox since. */
function checkpointOf(sandbox: SandboxRecord, dueAt: number): Checkpoint | null {
  const { operation } = sandbox;
  if (operation?.kind !== 'snapshot' || operation.finishedAt === null) return null;
  if (operation.requestedAt < dueAt || operation.requestedAt < (sandbox.lastActivityAt ?? 0)) return null;
  return { kind: 'end', snapshotId: operation.error === null ? operation.snapshotId : null };
}

interface CheckpointFirst {
  readonly sandbox: SandboxRecord;
  readonly dueAt: number;
  readonly cause: 'idle' | 'ttl' | 'credits';
}

/**
 * Takes a snapshot of a sandbox with `persistence: checkpoint` before it ends. Level-triggered: the row stays due, and each later
 * call sees how far the snapshot is. The sandbox ends without a snapshot when none can be had in time.
 */
export async function checkpointFirst(
  tx: Tx,
  control: Control,
  { sandbox, dueAt, cause }: CheckpointFirst,
): Promise<Checkpoint> {
  if (!isEstablished(sandbox.state)) return END;
  const now = control.clock.now();
  const { recipe } = (await tx.sandboxes.documents(sandbox.uid, sandbox.generation)) as SandboxDocuments;
  const extension = control.extensions.get(sandbox.extensionId as string);
  if (recipe.persistence !== 'checkpoint' || !extension?.snapshot) return END;
  const taken = checkpointOf(sandbox, dueAt);
  if (taken) return taken;
  if (now >= dueAt + control.settings.checkpointMs) return END;
  const before = pendingOperation(sandbox);
  if (before) return { kind: 'wait', operationId: before.id };
  const snapshot = await newSnapshot(tx, control, sandbox, {
    cause,
    actor: 'atm',
    name: null,
    labels: {},
    retainSeconds: null,
  });
  const edit = new SandboxEdit(sandbox, control, now);
  edit.patch({
    operation: newOperation(control, { kind: 'snapshot', actor: 'atm', now, snapshotId: snapshot.id }),
    workDueAt: now,
  });
  await tx.snapshots.insert(snapshot);
  await tx.events.append([
    snapshotEvent(control, snapshot, { type: 'snapshot.creating', actor: 'atm', now, details: { cause } }),
  ]);
  return { kind: 'begun', taken: await control.driver.takeUp(tx, edit) };
}
