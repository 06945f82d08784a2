import type { Extension } from '../core/extension.ts';
import type { MeterRecord } from '../core/meter.ts';
import { cumulativeMicroUsd, rebase } from '../core/meter.ts';
import { priceOrFree, rateOf } from '../core/pricing.ts';
import type { Recipe } from '../core/recipe.ts';
import type { SandboxRecord } from '../core/sandbox.ts';
import type { Tx } from '../core/store.ts';
import type { ControlDeps } from './deps.ts';

export interface MeterOpening {
  readonly meterId: string;
  readonly holdId: string;
  readonly sandbox: SandboxRecord;
  readonly recipe: Recipe;
  readonly extension: Extension['header'];
  readonly estimateMicroUsd: number;
  readonly at: number;
}

/** Usage counts from `ready` on: what establishment cost is ours. */
export async function openMeter(tx: Tx, opening: MeterOpening): Promise<void> {
  const price = priceOrFree(opening.extension.price);
  const rate = rateOf(price, opening.recipe.resources);
  await tx.meters.insert({
    id: opening.meterId,
    sandboxUid: opening.sandbox.uid,
    workspaceId: opening.sandbox.workspaceId,
    generation: opening.sandbox.generation,
    extensionId: opening.extension.id,
    holdId: opening.holdId,
    priceVersion: price.version,
    openedAt: opening.at,
    closedAt: null,
    runningRate: rate,
    pausedRate: price.bills_when_paused ? rate : 0n,
    rate,
    since: opening.at,
    accrued: 0n,
    billedMs: 0,
    createFeeMicroUsd: price.create_fee_micro_usd,
    minimumSeconds: price.minimum_seconds,
    chargedMicroUsd: 0,
    estimateMicroUsd: opening.estimateMicroUsd,
  });
}

/** Charges what has been used and not yet charged. The transfer's id is its place in the total: it happens once. */
async function captureUsed(tx: Tx, deps: ControlDeps, meter: MeterRecord, at: number): Promise<MeterRecord> {
  const due = cumulativeMicroUsd(meter, at) - meter.chargedMicroUsd;
  if (due <= 0) return meter;
  const transferId = `${meter.id}:capture:${meter.chargedMicroUsd}`;
  const taken = await deps.ledger.capture(tx, meter.holdId, transferId, meter.extensionId, due, at);
  return { ...meter, chargedMicroUsd: meter.chargedMicroUsd + taken };
}

/** Captures up to `at` and continues at `rate`. */
export async function tickMeter(
  tx: Tx,
  deps: ControlDeps,
  meter: MeterRecord,
  at: number,
  rate: bigint,
): Promise<void> {
  const charged = await captureUsed(tx, deps, meter, at);
  await tx.meters.update(rebase(charged, at, rate));
}

/** Pausing and resuming change the rate from this moment on. */
export async function changeRate(
  tx: Tx,
  deps: ControlDeps,
  meterId: string,
  at: number,
  paused: boolean,
): Promise<void> {
  const meter = await tx.meters.get(meterId);
  if (!meter || meter.closedAt !== null) return;
  await tickMeter(tx, deps, meter, at, paused ? meter.pausedRate : meter.runningRate);
}

/** The end of a life: what was used is captured, the rest of the hold goes back. Without a meter nothing is charged. */
export async function closeMoney(
  tx: Tx,
  deps: ControlDeps,
  sandbox: SandboxRecord,
  now: number,
): Promise<void> {
  if (sandbox.meterId === null) {
    if (sandbox.holdId !== null) await deps.ledger.resolve(tx, sandbox.holdId, 'voided', now);
    return;
  }
  const meter = await tx.meters.get(sandbox.meterId);
  if (!meter || meter.closedAt !== null) return;
  // Nobody owes for time after the deadline, however late we noticed it.
  const until = Math.min(now, sandbox.deadlineAt);
  const charged = await captureUsed(tx, deps, meter, until);
  await tx.meters.update({ ...rebase(charged, until, 0n), closedAt: now });
  await deps.ledger.resolve(tx, meter.holdId, 'settled', now);
}
