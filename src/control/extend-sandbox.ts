import { SandboxerError } from '../contract/errors.ts';
import type { Caller } from '../core/caller.ts';
import { requireScope } from '../core/caller.ts';
import { isEstablished, isLiving } from '../core/lifecycle.ts';
import { costMicroUsd } from '../core/meter.ts';
import type { SandboxRecord } from '../core/sandbox.ts';
import { pendingOperation } from '../core/sandbox.ts';
import type { Tx } from '../core/store.ts';
import type { ControlDeps } from './deps.ts';
import type { Driver, TakenUp } from './driver.ts';
import { findSandbox } from './find-sandbox.ts';
import { awaitOperation, newOperation, requireNoOperation } from './operation.ts';
import { dearest } from './plan-route.ts';
import { SandboxEdit, saveEdit } from './sandbox-edit.ts';

/** The rate that the hold must cover: the meter's own, or the dearest candidate's before there is one. */
async function heldRate(tx: Tx, row: SandboxRecord): Promise<bigint> {
  if (row.meterId) return (await tx.meters.get(row.meterId))?.runningRate ?? 0n;
  const documents = await tx.sandboxes.documents(row.uid, row.generation);
  return documents ? dearest(documents.plan).rate : 0n;
}

/** The new deadline is now + ttl, at most the profile's longest life counted from creation. */
export async function extendSandbox(
  deps: ControlDeps,
  driver: Driver,
  caller: Caller,
  id: string,
  ttlSeconds: number,
): Promise<SandboxRecord> {
  requireScope(caller, 'sandboxes');
  const taken = await deps.store.transaction('extend', async (tx): Promise<TakenUp> => {
    const row = await findSandbox(tx, caller, id);
    if (!isLiving(row.state)) {
      throw new SandboxerError(
        'SBX_INVALID_STATE',
        `A sandbox that is ${row.state} has no deadline to move.`,
      );
    }
    const now = deps.clock.now();
    const deadlineAt = Math.min(now + ttlSeconds * 1000, row.maxDeadlineAt);
    const edit = new SandboxEdit(row, deps, now);
    const rate = await heldRate(tx, row);
    const addedSeconds = Math.ceil((deadlineAt - row.deadlineAt) / 1000);
    if (addedSeconds > 0 && rate > 0n && row.holdId) {
      const transferId = `${row.holdId}:raise:${row.eventSeq}`;
      await deps.ledger.raise(tx, row.holdId, transferId, costMicroUsd(rate, addedSeconds), now, rate);
    }
    const movesBackend =
      row.extensionId !== null && deps.extensions.get(row.extensionId)?.extendLife !== undefined;
    if (movesBackend) {
      requireNoOperation(row);
      edit.patch({ operation: newOperation(deps, 'extend', caller.actor, now), workDueAt: now });
    } else if (!isEstablished(row.state) && !pendingOperation(row)) {
      // Its backend may have been told the old deadline already: it is told this one as soon as it is ready.
      edit.patch({ operation: newOperation(deps, 'extend', caller.actor, now) });
    }
    edit.patch({ deadlineAt });
    edit.note(
      'sandbox.extended',
      { actor: caller.actor },
      { expires_at: new Date(deadlineAt).toISOString() },
    );
    return movesBackend ? driver.takeUp(tx, edit) : { sandbox: await saveEdit(tx, deps, edit), claim: null };
  });
  const { sandbox } = taken;
  if (!isEstablished(sandbox.state)) return sandbox;
  if (sandbox.operation?.kind !== 'extend' || sandbox.operation.finishedAt !== null) return sandbox;
  void driver.follow(taken);
  return awaitOperation(deps, sandbox, sandbox.operation.id);
}
