import { SandboxerError } from '../../contract/errors/errors.ts';
import { leaseEnd, nextFundAt } from '../../core/credits/ledger/funding.ts';
import type { MeterRecord } from '../../core/credits/meter.ts';
import { countedMs, mayRunUnnoticed, neededMicroUsd, observed } from '../../core/credits/meter.ts';
import { isEstablished } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type { Extension, Handle } from '../../core/ports/extension.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { contextOf } from '../backends/backend-context.ts';
import { within } from '../backends/within.ts';
import type { Control } from '../control.ts';
import type { TakenUp } from '../lifecycle/driver.ts';
import { AUTOMATION, SandboxEdit, saveEdit } from '../lifecycle/edit/sandbox-edit.ts';
import { fundingRule, policyOf, spenderIn, tellBudgets } from '../money/sandbox-money.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { checkpointFirst } from './checkpoint-first.ts';

/** Payments at a time: each is a call to its backend. */
const BATCH = 100;
const CHECKPOINT_LOOK_MS = 1_000;

/** A stretch that is paid for, which the backend has to confirm. */
interface Paid {
  readonly kind: 'paid';
  readonly sandbox: SandboxRecord;
  readonly extension: Extension;
  readonly until: number;
}

type Outcome =
  | Paid
  | { readonly kind: 'nothing' }
  | { readonly kind: 'begun'; readonly taken: TakenUp }
  | { readonly kind: 'ended'; readonly uid: string };

/**
 * Pays for the next stretch of every sandbox that is due for one, then has its backend end it that much later. In this
 * order: a backend never runs on past what is reserved, whenever this process dies.
 */
export async function fundSandboxes(control: Control, signal: AbortSignal): Promise<void> {
  const now = control.clock.now();
  const due = await control.store.read('due-funding', (tx) => tx.meters.dueFunding(now, BATCH));
  await Promise.all(due.map(({ id }) => fundOne(control, id, signal)));
}

async function fundOne(control: Control, meterId: string, signal: AbortSignal): Promise<void> {
  const seen = await lookAtUse(control, meterId, signal);
  if (seen === 'unknown') return;
  const outcome = await control.store.transaction('fund', (tx) => payNext(tx, control, { meterId, seen }));
  switch (outcome.kind) {
    case 'paid':
      await moveEnd(control, meterId, outcome, signal);
      return;
    case 'ended':
      control.driver.interrupt(outcome.uid);
      void control.driver.drive(outcome.uid);
      return;
    case 'begun':
      void control.driver.follow(outcome.taken);
      return;
    case 'nothing':
      return;
  }
}

/** The backend's figure of what it billed, with the time of the question. */
interface SeenUse {
  readonly askedAt: number;
  readonly backendMs: number;
}

/**
 * Asks the backend of a paused sandbox what it billed, before more of its life is paid for. The row may be wrong: the answer to a
 * resume may have been lost, and a request may arrive twice, so that the backend runs it and bills. Without an answer nothing is
 * paid for and its end is not moved: the backend is asked again, and the sandbox ends by itself within what is reserved.
 */
async function lookAtUse(
  deps: ControlPorts,
  meterId: string,
  signal: AbortSignal,
): Promise<SeenUse | 'unknown' | null> {
  const askedAt = deps.clock.now();
  const found = await deps.store.read('fund-look', async (tx) => {
    const meter = await tx.meters.get(meterId);
    const sandbox = meter && (await tx.sandboxes.get(meter.sandboxUid));
    return meter && sandbox?.meterId === meterId && isEstablished(sandbox.state) ? { meter, sandbox } : null;
  });
  if (!found || !mayRunUnnoticed(found.meter, askedAt)) return null;
  const extension = deps.extensions.get(found.meter.extensionId);
  const usage = extension?.usage?.bind(extension);
  if (!usage) return null;
  try {
    const { billedSeconds } = await within(deps, deps.settings.operationTimeoutMs, signal, async (given) =>
      usage(found.sandbox.handle as Handle, await contextOf(deps, found.sandbox, given)),
    );
    return { askedAt, backendMs: Math.ceil(billedSeconds * 1000) };
  } catch (error) {
    deps.log.warn(
      { err: error, sandbox: found.sandbox.uid },
      'a backend did not tell its usage; it is asked again',
    );
    await deps.store.transaction('fund-later', async (tx) => {
      const meter = await tx.meters.get(meterId);
      if (!meter || meter.closedAt !== null || meter.fundAt === null) return;
      await tx.meters.update({ ...meter, fundAt: deps.clock.now() + retryMs(deps) });
    });
    return 'unknown';
  }
}

/** Returns the most that the backend billed beyond what we count: it may have run on since it was asked. */
function unnoticedMs(meter: MeterRecord, seen: SeenUse | null, now: number): number {
  if (seen === null) return 0;
  const ahead = Math.max(seen.backendMs, meter.backendMs ?? 0) - countedMs(meter, seen.askedAt);
  return ahead <= 0 ? 0 : ahead + (now - seen.askedAt);
}

interface NextPayment {
  readonly meterId: string;
  readonly seen: SeenUse | null;
}

async function payNext(tx: Tx, control: Control, { meterId, seen }: NextPayment): Promise<Outcome> {
  const now = control.clock.now();
  const stored = await tx.meters.get(meterId);
  if (!stored || stored.closedAt !== null || stored.fundAt === null || stored.fundAt > now)
    return { kind: 'nothing' };
  const meter = seen === null ? stored : observed(stored, seen.backendMs, seen.askedAt);
  const sandbox = await tx.sandboxes.get(meter.sandboxUid);
  const extension = control.extensions.get(meter.extensionId);
  if (!sandbox || !isEstablished(sandbox.state) || !extension?.extendLife) return { kind: 'nothing' };
  const rule = fundingRule(control);
  // Also when the record has this end already: the backend may have got a later one before the sandbox was ready.
  const until = leaseEnd(rule, true, now, sandbox.deadlineAt) + rule.graceMs;
  const hold = await tx.ledger.getHold(meter.holdId);
  const policy = await policyOf(tx, sandbox.workspaceId);
  const unnoticed = unnoticedMs(meter, seen, now);
  const raiseUntil = (at: number) => ({
    amountMicroUsd: neededMicroUsd(meter, now, at, unnoticed) - (hold?.heldMicroUsd ?? 0),
    ownKeyMicroUsd: 0,
  });
  try {
    const charges = await control.ledger.raise(tx, {
      ...raiseUntil(until),
      lives: {
        seconds: Math.ceil((until - rule.graceMs - now) / 1000),
        reserve: (seconds) => raiseUntil(Math.min(now + seconds * 1000 + rule.graceMs, until)),
      },
      holdId: meter.holdId,
      transferId: `${meter.id}:fund:${now}`,
      at: now,
      cheapest: null,
      policy,
      spender: await spenderIn(tx, policy, sandbox),
    });
    await tellBudgets({ tx, deps: control, at: now }, sandbox.workspaceId, charges);
  } catch (error) {
    if (!(error instanceof SandboxerError) || error.status !== 402) throw error;
    return runLow(tx, control, { meter, sandbox, cause: error, now });
  }
  // The next look is due soon, unless the backend confirms.
  await tx.meters.update({ ...meter, fundAt: now + retryMs(control), lowSince: null });
  return { kind: 'paid', sandbox, extension, until };
}

function retryMs({ settings }: ControlPorts): number {
  return Math.max(1_000, settings.fundMs / 20);
}

interface LowFunds {
  readonly meter: MeterRecord;
  readonly sandbox: SandboxRecord;
  readonly cause: SandboxerError;
  readonly now: number;
}

/**
 * Reports low funds once; then, at the end of what is paid for, takes a snapshot where the profile asks for one, and ends the
 * sandbox.
 */
async function runLow(tx: Tx, control: Control, { meter, sandbox, cause, now }: LowFunds): Promise<Outcome> {
  const { graceMs } = fundingRule(control);
  const endsAt = (meter.fundedUntil as number) - graceMs;
  const edit = new SandboxEdit(sandbox, control, now);
  if (now < endsAt) {
    const fundAt = Math.min(now + retryMs(control), endsAt);
    await tx.meters.update({ ...meter, fundAt, lowSince: meter.lowSince ?? now });
    if (meter.lowSince !== null) return { kind: 'nothing' };
    const { code, members } = { code: cause.code, members: cause.extras.members ?? {} };
    edit.note('sandbox.funds_low', AUTOMATION, { ends_at: isoTime(endsAt), code, ...members });
    await saveEdit(tx, control, edit);
    return { kind: 'nothing' };
  }
  const checkpoint = await checkpointFirst(tx, control, { sandbox, dueAt: endsAt, cause: 'credits' });
  if (checkpoint.kind !== 'end') {
    await tx.meters.update({ ...meter, fundAt: now + CHECKPOINT_LOOK_MS });
    return checkpoint.kind === 'begun' ? checkpoint : { kind: 'nothing' };
  }
  edit.move('expired', AUTOMATION, { reason: 'credits', checkpoint: checkpoint.snapshotId });
  await saveEdit(tx, control, edit);
  return { kind: 'ended', uid: sandbox.uid };
}

async function moveEnd(deps: ControlPorts, meterId: string, paid: Paid, signal: AbortSignal): Promise<void> {
  const { sandbox, extension, until } = paid;
  try {
    await within(deps, deps.settings.operationTimeoutMs, signal, async (given) => {
      await extension.extendLife?.(sandbox.handle as Handle, until, await contextOf(deps, sandbox, given));
    });
  } catch (error) {
    deps.log.warn(
      { err: error, sandbox: sandbox.uid },
      'the end of a sandbox was not moved; it is tried again',
    );
    return;
  }
  await deps.store.transaction('funded', async (tx) => {
    const meter = await tx.meters.get(meterId);
    const row = await tx.sandboxes.get(sandbox.uid);
    if (!meter || meter.closedAt !== null || !row) return;
    const rule = fundingRule(deps);
    const shortened = until - rule.graceMs > row.deadlineAt;
    const fundAt = shortened ? deps.clock.now() : nextFundAt(rule, until, row.deadlineAt);
    await tx.meters.update({ ...meter, fundedUntil: until, fundAt });
  });
}
