import { SandboxerError } from '../contract/errors.ts';
import { isoTime } from '../core/clock.ts';
import { leaseEnd, nextFundAt } from '../core/credits/funding.ts';
import type { Extension, Handle } from '../core/extension.ts';
import { isEstablished } from '../core/lifecycle.ts';
import type { MeterRecord } from '../core/meter.ts';
import { neededMicroUsd } from '../core/meter.ts';
import type { SandboxRecord } from '../core/sandbox.ts';
import type { Tx } from '../core/store.ts';
import { contextOf } from './backend-context.ts';
import { checkpointFirst } from './checkpoint-first.ts';
import type { ControlDeps } from './deps.ts';
import type { Driver, TakenUp } from './driver.ts';
import { AUTOMATION, SandboxEdit, saveEdit } from './sandbox-edit.ts';
import { fundingRule, policyOf, spenderOf, tellBudgets } from './sandbox-money.ts';
import { within } from './within.ts';

/** At a time: each is a call to its backend. */
const BATCH = 100;
const CHECKPOINT_LOOK_MS = 1_000;

/** A stretch that is paid for, to be told to the backend. */
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
export async function fundSandboxes(deps: ControlDeps, driver: Driver, signal: AbortSignal): Promise<void> {
  const now = deps.clock.now();
  const due = await deps.store.read('due-funding', (tx) => tx.meters.dueFunding(now, BATCH));
  await Promise.all(due.map(({ id }) => fundOne(deps, driver, id, signal)));
}

async function fundOne(
  deps: ControlDeps,
  driver: Driver,
  meterId: string,
  signal: AbortSignal,
): Promise<void> {
  const outcome = await deps.store.transaction('fund', (tx) => payNext(tx, deps, driver, meterId));
  switch (outcome.kind) {
    case 'paid':
      await moveEnd(deps, meterId, outcome, signal);
      return;
    case 'ended':
      driver.interrupt(outcome.uid);
      void driver.drive(outcome.uid);
      return;
    case 'begun':
      void driver.follow(outcome.taken);
      return;
    case 'nothing':
      return;
  }
}

async function payNext(tx: Tx, deps: ControlDeps, driver: Driver, meterId: string): Promise<Outcome> {
  const now = deps.clock.now();
  const meter = await tx.meters.get(meterId);
  if (!meter || meter.closedAt !== null || meter.fundAt === null || meter.fundAt > now)
    return { kind: 'nothing' };
  const sandbox = await tx.sandboxes.get(meter.sandboxUid);
  const extension = deps.extensions.get(meter.extensionId);
  if (!sandbox || !isEstablished(sandbox.state) || !extension?.extendLife) return { kind: 'nothing' };
  const rule = fundingRule(deps);
  const until = leaseEnd(rule, true, now, sandbox.deadlineAt) + rule.graceMs;
  if (until === meter.fundedUntil) {
    await tx.meters.update({ ...meter, fundAt: nextFundAt(rule, until, sandbox.deadlineAt) });
    return { kind: 'nothing' };
  }
  const hold = await tx.ledger.getHold(meter.holdId);
  try {
    const charges = await deps.ledger.raise(tx, {
      holdId: meter.holdId,
      transferId: `${meter.id}:fund:${now}`,
      amountMicroUsd: neededMicroUsd(meter, now, until) - (hold?.heldMicroUsd ?? 0),
      at: now,
      rate: meter.runningRate,
      cheapest: null,
      policy: await policyOf(tx, sandbox.workspaceId),
      spender: spenderOf(sandbox),
    });
    await tellBudgets(tx, deps, sandbox.workspaceId, charges, now);
  } catch (error) {
    if (!(error instanceof SandboxerError) || error.status !== 402) throw error;
    return runLow(tx, deps, driver, meter, sandbox, error, now);
  }
  // Another look is due soon, unless the backend confirms.
  await tx.meters.update({ ...meter, fundAt: now + retryMs(deps), lowSince: null });
  return { kind: 'paid', sandbox, extension, until };
}

function retryMs({ settings }: ControlDeps): number {
  return Math.max(1_000, settings.fundMs / 20);
}

/** Told once; then, at the end of what is paid for, a snapshot where the profile keeps one, and the end. */
async function runLow(
  tx: Tx,
  deps: ControlDeps,
  driver: Driver,
  meter: MeterRecord,
  sandbox: SandboxRecord,
  cause: SandboxerError,
  now: number,
): Promise<Outcome> {
  const { graceMs } = fundingRule(deps);
  const endsAt = (meter.fundedUntil as number) - graceMs;
  const edit = new SandboxEdit(sandbox, deps, now);
  if (now < endsAt) {
    const fundAt = Math.min(now + retryMs(deps), endsAt);
    await tx.meters.update({ ...meter, fundAt, lowSince: meter.lowSince ?? now });
    if (meter.lowSince !== null) return { kind: 'nothing' };
    const { code, members } = { code: cause.code, members: cause.extras.members ?? {} };
    edit.note('sandbox.funds_low', AUTOMATION, { ends_at: isoTime(endsAt), code, ...members });
    await saveEdit(tx, deps, edit);
    return { kind: 'nothing' };
  }
  const checkpoint = await checkpointFirst(tx, deps, driver, sandbox, endsAt, 'credits');
  if (checkpoint.kind !== 'end') {
    await tx.meters.update({ ...meter, fundAt: now + CHECKPOINT_LOOK_MS });
    return checkpoint.kind === 'begun' ? checkpoint : { kind: 'nothing' };
  }
  edit.move('expired', AUTOMATION, { reason: 'credits', checkpoint: checkpoint.snapshotId });
  await saveEdit(tx, deps, edit);
  return { kind: 'ended', uid: sandbox.uid };
}

async function moveEnd(deps: ControlDeps, meterId: string, paid: Paid, signal: AbortSignal): Promise<void> {
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
