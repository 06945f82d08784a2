import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Reserve } from '../../core/credits/ledger/affordable.ts';
import { nextFundAt } from '../../core/credits/ledger/funding.ts';
import type { MeterRecord } from '../../core/credits/meter.ts';
import { neededMicroUsd } from '../../core/credits/meter.ts';
import { isEstablished, isLiving } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxDocuments, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { pendingOperation } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { TakenUp } from '../lifecycle/driver.ts';
import { SandboxEdit, saveEdit } from '../lifecycle/edit/sandbox-edit.ts';
import {
  awaitOperation,
  newOperation,
  requireBeforeDeadline,
  requireNoOperation,
} from '../lifecycle/operation.ts';
import { admissionWant, fundingRule, policyOf, spenderIn, tellBudgets } from '../money/sandbox-money.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import type { Recorded } from '../requests/audit.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { findSandbox } from '../requests/find-sandbox.ts';

/** Money to reserve for a metered life until `deadlineAt`. */
function meteredReserve(deps: ControlPorts, meter: MeterRecord, now: number, deadlineAt: number): Reserve {
  const needed = neededMicroUsd(meter, now, deadlineAt + deps.settings.deadManGraceMs);
  const isOurs = meter.payer === 'credits';
  return { amountMicroUsd: isOurs ? needed : 0, ownKeyMicroUsd: isOurs ? 0 : needed };
}

interface NewDeadline {
  readonly deadlineAt: number;
  readonly now: number;
}

/**
 * Reserves the price of a later deadline, where the whole life is paid for. A life that is paid for in stretches has its next
 * stretch looked at soon: it may be longer now, or must end earlier.
 */
async function fundUntil(
  tx: Tx,
  deps: ControlPorts,
  row: SandboxRecord,
  { deadlineAt, now }: NewDeadline,
): Promise<{ readonly leased: boolean }> {
  const meter = row.meterId === null ? null : await tx.meters.get(row.meterId);
  if (meter?.fundedUntil != null) {
    // While its end is being moved no second move is begun: the two could reach the backend in either order. The move under way
    // looks at the new deadline when the backend confirms it.
    const isMoving = meter.fundAt !== nextFundAt(fundingRule(deps), meter.fundedUntil, row.deadlineAt);
    if (!isMoving) await tx.meters.update({ ...meter, fundAt: now });
    return { leased: true };
  }
  const hold = row.holdId === null ? null : await tx.ledger.getHold(row.holdId);
  if (!hold) return { leased: false };
  const documents = (await tx.sandboxes.documents(row.uid, row.generation)) as SandboxDocuments;
  const reserveUntil = (at: number): Reserve =>
    meter ? meteredReserve(deps, meter, now, at) : admissionWant(deps, documents.plan, at - now);
  const { ownKeyMicroUsd: reserved } = reserveUntil(row.deadlineAt);
  const raiseUntil = (at: number): Reserve => {
    const { amountMicroUsd, ownKeyMicroUsd } = reserveUntil(at);
    return { amountMicroUsd: amountMicroUsd - hold.heldMicroUsd, ownKeyMicroUsd: ownKeyMicroUsd - reserved };
  };
  const policy = await policyOf(tx, row.workspaceId);
  const charges = await deps.ledger.raise(tx, {
    ...raiseUntil(deadlineAt),
    lives: {
      seconds: Math.ceil((deadlineAt - now) / 1000),
      reserve: (seconds) => raiseUntil(Math.min(now + seconds * 1000, deadlineAt)),
    },
    cheapest: null,
    holdId: hold.id,
    transferId: `${hold.id}:raise:${row.eventSeq}`,
    at: now,
    policy,
    spender: await spenderIn(tx, policy, row),
  });
  await tellBudgets({ tx, deps, at: now }, row.workspaceId, charges);
  return { leased: false };
}

/** The outcome of an extend. */
export interface Extended {
  readonly sandbox: SandboxRecord;
  readonly previousDeadlineAt: number;
  readonly askedDeadlineAt: number;
}

interface ExtendSandbox {
  readonly id: string;
  readonly ttlSeconds: number;
}

/**
 * The new deadline is now + ttl, at most the profile's longest life counted from creation. The
 * answer carries the deadline before and the one that was asked for, so that a cut or a shorter life shows.
 */
export async function extendSandbox(
  control: Control,
  caller: Caller,
  { id, ttlSeconds }: ExtendSandbox,
): Promise<Extended> {
  requireScope(caller, 'sandboxes');
  const recorded: Recorded<TakenUp> = {
    label: 'extend',
    action: 'extendSandbox',
    target: ({ sandbox }) => sandbox.id,
  };
  const asked = { previousDeadlineAt: 0, askedDeadlineAt: 0 };
  const taken = await recordedTransaction(control, caller, recorded, async (tx): Promise<TakenUp> => {
    const row = await findSandbox(tx, caller, id);
    if (!isLiving(row.state)) {
      throw new SandboxerError(
        'SBX_INVALID_STATE',
        `A sandbox that is ${row.state} has no deadline to move.`,
      );
    }
    const now = control.clock.now();
    requireBeforeDeadline(row, now);
    Object.assign(asked, { previousDeadlineAt: row.deadlineAt, askedDeadlineAt: now + ttlSeconds * 1000 });
    const deadlineAt = Math.min(asked.askedDeadlineAt, row.maxDeadlineAt);
    const edit = new SandboxEdit(row, control, now);
    const { leased } = await fundUntil(tx, control, row, { deadlineAt, now });
    const movesBackend =
      !leased &&
      row.extensionId !== null &&
      control.extensions.get(row.extensionId)?.extendLife !== undefined;
    if (movesBackend) {
      requireNoOperation(row);
      edit.patch({
        operation: newOperation(control, { kind: 'extend', actor: caller.actor, now }),
        workDueAt: now,
      });
    } else if (!isEstablished(row.state)) {
      // The backend may have got the old deadline already: it gets this one as soon as the sandbox is ready.
      const operation =
        pendingOperation(row) ?? newOperation(control, { kind: 'extend', actor: caller.actor, now });
      const earliestDeadlineAt = Math.min(
        row.deadlineAt,
        deadlineAt,
        operation.earliestDeadlineAt ?? deadlineAt,
      );
      edit.patch({ operation: { ...operation, earliestDeadlineAt } });
    }
    edit.patch({ deadlineAt });
    edit.note(
      'sandbox.extended',
      { actor: caller.actor },
      { expires_at: new Date(deadlineAt).toISOString() },
    );
    return movesBackend
      ? control.driver.takeUp(tx, edit)
      : { sandbox: await saveEdit(tx, control, edit), claim: null };
  });
  const { sandbox } = taken;
  const { operation } = sandbox;
  const isAwaited =
    isEstablished(sandbox.state) && operation?.kind === 'extend' && operation.finishedAt === null;
  if (!isAwaited) return { sandbox, ...asked };
  return {
    sandbox: await awaitOperation(control, sandbox, operation.id, control.driver.follow(taken)),
    ...asked,
  };
}
