import type { SnapshotRequest } from '../../contract/assets/snapshot.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import { isEstablished } from '../../core/lifecycle/lifecycle.ts';
import { digestOf } from '../../core/recipe/canonical-json.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { TakenUp } from '../lifecycle/driver.ts';
import { SandboxEdit } from '../lifecycle/edit/sandbox-edit.ts';
import { awaitOperation, newOperation, requireNoOperation } from '../lifecycle/operation.ts';
import type { Recorded } from '../requests/audit.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { findSandbox } from '../requests/find-sandbox.ts';
import { rememberResult, replayedResult } from '../requests/idempotency.ts';
import { measureSnapshots } from '../snapshots/measure-snapshots.ts';
import { newSnapshot } from '../snapshots/new-snapshot.ts';
import { snapshotEvent } from '../snapshots/snapshot-event.ts';
import { requireSnapshotRoom } from '../snapshots/snapshot-room.ts';

interface SnapshotSandbox {
  readonly id: string;
  readonly request: SnapshotRequest;
  readonly idempotencyKey?: string | undefined;
}

export async function snapshotSandbox(
  control: Control,
  caller: Caller,
  { id, request, idempotencyKey }: SnapshotSandbox,
): Promise<SnapshotRecord> {
  requireScope(caller, 'sandboxes');
  await measureSnapshots(control, async (tx) => (await findSandbox(tx, caller, id)).workspaceId);
  let replayed: string | null = null;
  const recorded: Recorded<TakenUp & { readonly snapshotId: string }> = {
    label: 'snapshot',
    action: 'snapshotSandbox',
    target: ({ snapshotId }) => snapshotId,
    changed: () => replayed === null,
  };
  const begun = await recordedTransaction(control, caller, recorded, async (tx) => {
    const row = await findSandbox(tx, caller, id);
    const digest = digestOf({ sandbox: row.uid, request });
    replayed = await replayedResult(tx, caller, { key: idempotencyKey, digest, kind: 'snapshot' });
    if (replayed !== null) return { sandbox: row, claim: null, snapshotId: replayed };
    if (!isEstablished(row.state)) {
      throw new SandboxerError(
        'SBX_INVALID_STATE',
        `A sandbox that is ${row.state} has nothing to snapshot.`,
      );
    }
    requireNoOperation(row);
    await requireSnapshotRoom(tx, control, row.workspaceId);
    const snapshot = await newSnapshot(tx, control, row, {
      cause: 'request',
      actor: caller.actor,
      name: request.name ?? null,
      labels: request.labels,
      retainSeconds: request.retain ?? null,
    });
    const now = control.clock.now();
    const edit = new SandboxEdit(row, control, now);
    edit.patch({
      operation: newOperation(control, {
        kind: 'snapshot',
        actor: caller.actor,
        now,
        snapshotId: snapshot.id,
      }),
      workDueAt: now,
    });
    await tx.snapshots.insert(snapshot);
    await tx.events.append([
      snapshotEvent(control, snapshot, { type: 'snapshot.creating', actor: caller.actor, now }),
    ]);
    await rememberResult(tx, control, caller, {
      key: idempotencyKey,
      digest,
      result: `snapshot:${snapshot.id}`,
    });
    return { ...(await control.driver.takeUp(tx, edit)), snapshotId: snapshot.id };
  });
  const { sandbox, snapshotId } = begun;
  const operation = sandbox.operation?.snapshotId === snapshotId ? sandbox.operation : null;
  if (operation && operation.finishedAt === null) {
    await awaitOperation(control, sandbox, operation.id, control.driver.follow(begun));
  }
  return (await control.store.read('snapshot', (tx) => tx.snapshots.get(snapshotId))) as SnapshotRecord;
}
