import type { RoutePlan } from '../../contract/routing/route.ts';
import { accounts } from '../../core/credits/accounts.ts';
import type { Spender } from '../../core/credits/budget.ts';
import type { BudgetCharge } from '../../core/credits/ledger/budget-ledger.ts';
import type { FundingRule } from '../../core/credits/ledger/funding.ts';
import {
  admissionMicroUsd,
  admissionReserve,
  billedUntil,
  leaseEnd,
  nextFundAt,
} from '../../core/credits/ledger/funding.ts';
import type { Alternative, Want } from '../../core/credits/ledger/ledger.ts';
import type { MeterRecord } from '../../core/credits/meter.ts';
import {
  costMicroUsd,
  cumulativeMicroUsd,
  evidenceOf,
  mostMicroUsd,
  observedSeconds,
  rebase,
} from '../../core/credits/meter.ts';
import type { MoneyPolicy } from '../../core/credits/policy.ts';
import { defaultPolicy } from '../../core/credits/policy.ts';
import { USUAL_SIZE } from '../../core/credits/pricing.ts';
import type { Offer } from '../../core/credits/terms.ts';
import { offerIn, offerOf } from '../../core/credits/terms.ts';
import type { AttemptRecord } from '../../core/lifecycle/attempt.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Extension } from '../../core/ports/extension.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { rankedCandidates } from '../../core/routing/routing.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

export function fundingRule({ settings }: ControlPorts): FundingRule {
  return { fundMs: settings.fundMs, graceMs: settings.deadManGraceMs };
}

/** `now` as bills count it. */
export function billableAt({ clock }: ControlPorts, now: number): number {
  return clock.billable?.() ?? now;
}

export async function policyOf(tx: Tx, workspaceId: string): Promise<MoneyPolicy> {
  return (await tx.ledger.policy(workspaceId)) ?? defaultPolicy(workspaceId);
}

/** Returns the spender of a sandbox. Its key is read only where a budget asks for it. */
export async function spenderIn(tx: Tx, policy: MoneyPolicy, sandbox: SandboxRecord): Promise<Spender> {
  const { keyId, profileId, actor, consumer } = sandbox;
  const counts = keyId !== null && policy.budgets.some(({ scope }) => scope === 'key');
  const key = counts ? await tx.tenancy.key(keyId) : null;
  const keyLines = key?.lines ?? (keyId === null ? [] : [keyId]);
  const budgetLine = key?.budgetLine ?? keyId;
  return { keyId, keyLines, budgetLine, profileId, actor, runId: consumer.run_id ?? null };
}

/** Returns what must be reserved before any backend of the plan is called: enough for the dearest of them. */
export function admissionWant(deps: ControlPorts, plan: RoutePlan, lifeMs: number): Want {
  const rule = fundingRule(deps);
  const offers = rankedCandidates(plan).flatMap((candidate) => {
    const extension = deps.extensions.get(candidate.extension);
    return extension ? [offerOf(candidate, extension)] : [];
  });
  return {
    ...admissionReserve(rule, offers, lifeMs),
    lives: {
      seconds: Math.ceil(lifeMs / 1000),
      reserve: (seconds) => admissionReserve(rule, offers, seconds * 1000),
    },
    cheapest: cheapestOf(rule, offers, lifeMs),
  };
}

function cheapestOf(rule: FundingRule, offers: readonly Offer[], lifeMs: number): Alternative | null {
  const [first] = offers
    .map((offer) => ({ offer, needed: admissionMicroUsd(rule, offer, lifeMs) }))
    .sort((a, b) => a.needed - b.needed);
  if (!first) return null;
  const { offer, needed } = first;
  const perHour = needed === 0 ? 0 : costMicroUsd(offer.runningRate, 3600);
  return { extension: offer.extensionId, micro_usd_per_hour: perHour, needed_micro_usd: needed };
}

/**
 * Returns the time at which the backend ends the sandbox by itself: a little after we would, and no later than it is paid for.
 */
export function backendEndsAt(
  deps: ControlPorts,
  sandbox: SandboxRecord,
  extension: Extension,
  plan: RoutePlan,
): number {
  const rule = fundingRule(deps);
  const { leased } = offerIn(plan, extension);
  return leaseEnd(rule, leased, deps.clock.now(), sandbox.deadlineAt) + rule.graceMs;
}

/** The scope of one entry in the books: the transaction it is part of, and the moment it counts from. */
export interface MoneyScope {
  readonly tx: Tx;
  readonly deps: ControlPorts;
  readonly at: number;
}

export interface MeterOpening {
  readonly meterId: string;
  readonly holdId: string;
  readonly sandbox: SandboxRecord;
  readonly plan: RoutePlan;
  readonly extension: Extension;
  readonly attempt: AttemptRecord;
  /** The earliest deadline since the backend began, if the deadline was moved: the backend was given no earlier one. */
  readonly earliestDeadlineAt: number | null;
  readonly estimateMicroUsd: number;
}

/** Opens the meter of a sandbox. Usage counts from `ready` on: establishment is at our cost. */
export async function openMeter({ tx, deps, at }: MoneyScope, opening: MeterOpening): Promise<void> {
  const { sandbox, attempt, earliestDeadlineAt } = opening;
  const { leased, ...terms } = offerIn(opening.plan, opening.extension);
  const rule = fundingRule(deps);
  // The backend got the deadline after the attempt began, so it ends no earlier than this.
  const toldDeadlineAt = Math.min(sandbox.deadlineAt, earliestDeadlineAt ?? sandbox.deadlineAt);
  const fundedUntil = leaseEnd(rule, leased, attempt.startedAt, toldDeadlineAt) + rule.graceMs;
  const fundAt = earliestDeadlineAt === null ? nextFundAt(rule, fundedUntil, sandbox.deadlineAt) : at;
  await tx.meters.insert({
    ...terms,
    id: opening.meterId,
    sandboxUid: sandbox.uid,
    workspaceId: sandbox.workspaceId,
    generation: sandbox.generation,
    extensionId: opening.extension.header.id,
    holdId: opening.holdId,
    openedAt: at,
    closedAt: null,
    rate: terms.runningRate,
    since: billableAt(deps, at),
    accrued: 0n,
    billedMs: 0,
    chargedMicroUsd: 0,
    estimateMicroUsd: opening.estimateMicroUsd,
    fundedUntil: leased ? fundedUntil : null,
    fundAt: leased ? fundAt : null,
    lowSince: null,
    sandboxId: sandbox.id,
    profileId: sandbox.profileId,
    actor: sandbox.actor,
    keyId: sandbox.keyId,
    runId: sandbox.consumer.run_id ?? null,
    evidence: 'own_clock',
    backendMs: null,
    observedMs: null,
    millicpu: attempt.reserved.millicpu || USUAL_SIZE.millicpu,
    memoryMb: attempt.reserved.memoryMb || USUAL_SIZE.memoryMb,
    cpuMs: null,
    peakMemoryMb: null,
  });
  const { extensionId, attemptId } = attempt;
  const { priceVersion, payer, providerKeyId } = terms;
  const { workspaceId, uid: sandboxUid } = sandbox;
  const owner = { extensionId, workspaceId, sandboxUid, priceVersion, payer, providerKeyId };
  const establishment = costMicroUsd(terms.runningRate, (at - attempt.startedAt) / 1000);
  await owe(
    { tx, at },
    { ...owner, holdId: null },
    {
      kind: 'insurance',
      id: `${attemptId}:establishment`,
      amountMicroUsd: establishment,
    },
  );
}

/** Charges the use that was not charged yet. The transfer's id is its place in the total, so a charge happens once. */
async function captureUsed({ tx, deps, at }: MoneyScope, meter: MeterRecord): Promise<MeterRecord> {
  if (meter.payer === 'own_key') return meter;
  const due = cumulativeMicroUsd(meter, at) - meter.chargedMicroUsd;
  if (due <= 0) return meter;
  const { holdId, extensionId, priceVersion, chargedMicroUsd } = meter;
  const transferId = `${meter.id}:capture:${chargedMicroUsd}`;
  const capture = { holdId, transferId, extensionId, priceVersion, amountMicroUsd: due, at };
  const taken = await deps.ledger.capture(tx, capture);
  return { ...meter, chargedMicroUsd: chargedMicroUsd + taken };
}

/** Captures up to `at` and continues at the same rate. */
export async function tickMeter(scope: MoneyScope, meter: MeterRecord): Promise<void> {
  const charged = await captureUsed(scope, meter);
  await scope.tx.meters.update(rebase(charged, scope.at, meter.rate));
}

/**
 * Changes the rate from this moment on, for a pause or a resume. Time before it that is not owed now is never owed: the moment is
 * not moved to an earlier one, which would bill the time after it at the rate before it.
 */
export async function changeRate(
  { tx, deps, at: now }: MoneyScope,
  sandbox: SandboxRecord,
  paused: boolean,
): Promise<void> {
  const meter = sandbox.meterId === null ? null : await tx.meters.get(sandbox.meterId);
  if (!meter || meter.closedAt !== null) return;
  const at = billableAt(deps, now);
  const owedUntil = billedUntil(meter, sandbox.deadlineAt, at);
  const rate = paused ? meter.pausedRate : meter.runningRate;
  if (rate === meter.rate) return tickMeter({ tx, deps, at: owedUntil }, meter);
  const charged = await captureUsed({ tx, deps, at: owedUntil }, meter);
  await tx.meters.update(rebase(charged, at, rate, owedUntil));
}

/** Ends a life: captures what was used, and releases the rest of the hold. Without a meter nothing is charged. */
export async function closeMoney(
  { tx, deps, at: now }: MoneyScope,
  sandbox: SandboxRecord,
): Promise<MeterRecord | null> {
  if (sandbox.meterId === null) {
    if (sandbox.holdId !== null) await deps.ledger.resolve(tx, sandbox.holdId, 'voided', now);
    return null;
  }
  const meter = await tx.meters.get(sandbox.meterId);
  if (!meter || meter.closedAt !== null) return null;
  const until = billedUntil(meter, sandbox.deadlineAt, billableAt(deps, now));
  const charged = await captureUsed({ tx, deps, at: until }, meter);
  const closed = { ...rebase(charged, until, 0n), closedAt: now };
  await tx.meters.update(closed);
  const { holdId } = meter;
  const used = cumulativeMicroUsd(meter, until);
  if (meter.payer === 'own_key')
    await deps.ledger.count(tx, { holdId, transferId: `${meter.id}:counted`, amountMicroUsd: used, at: now });
  await deps.ledger.resolve(tx, holdId, 'settled', now);
  await owe({ tx, at: now }, meter, { kind: 'cost', id: `${meter.id}:cost`, amountMicroUsd: used });
  return closed;
}

/** Returns the bill of one life, for the receivers of the event that reports its end. */
export function billOf(meter: MeterRecord): Record<string, unknown> {
  return {
    meter_id: meter.id,
    extension: meter.extensionId,
    price_version: meter.priceVersion,
    profile: meter.profileId,
    run_id: meter.runId,
    billed_seconds: meter.billedMs / 1000,
    charged_micro_usd: meter.chargedMicroUsd,
    estimate_micro_usd: meter.estimateMicroUsd,
    evidence: evidenceOf(meter, meter.billedMs),
    observed_seconds: observedSeconds(meter, meter.billedMs),
    payer: meter.payer,
    provider_key_id: meter.providerKeyId,
  };
}

interface Debt {
  readonly kind: 'cost' | 'insurance' | 'hedge';
  readonly id: string;
  readonly amountMicroUsd: number;
}

/**
 * Books what we owe a backend, for a customer's use or for an attempt that came to nothing; under an own key, what the customer
 * owes.
 */
async function owe(
  { tx, at }: Pick<MoneyScope, 'tx' | 'at'>,
  owner: Pick<
    MeterRecord,
    'extensionId' | 'workspaceId' | 'sandboxUid' | 'priceVersion' | 'payer' | 'providerKeyId'
  > & { readonly holdId: string | null },
  { kind, id, amountMicroUsd }: Debt,
): Promise<void> {
  if (amountMicroUsd <= 0) return;
  const { extensionId, workspaceId, sandboxUid, holdId, priceVersion, providerKeyId: reference } = owner;
  const transfer = { id, at, amountMicroUsd, workspaceId, sandboxUid, holdId, priceVersion, reference };
  if (owner.payer === 'own_key') {
    const between = { debit: accounts.ownKeys(workspaceId), credit: accounts.ownKeyUse(extensionId) };
    await tx.ledger.transfer([{ ...transfer, ...between, kind: 'own_key' }]);
    return;
  }
  const expense = { cost: accounts.providerExpense(extensionId), insurance: accounts.insurance };
  const debit = { ...expense, hedge: accounts.hedge }[kind];
  await tx.ledger.transfer([{ ...transfer, kind, debit, credit: accounts.providerDebt(extensionId) }]);
}

/** An attempt that was made and did not win is gone: what it cost is never the customer's. */
export async function insureAttempt(
  { tx, deps, at }: MoneyScope,
  sandbox: SandboxRecord,
  attempt: AttemptRecord,
): Promise<void> {
  const extension = deps.extensions.get(attempt.extensionId);
  // An outrun attempt may have been made although no answer arrived: at most, it existed from the start.
  const isOutrun = attempt.outrunBy !== null;
  const since = attempt.provisionedAt ?? (isOutrun ? attempt.startedAt : null);
  if (!extension || since === null) return;
  const documents = await tx.sandboxes.documents(sandbox.uid, attempt.generation);
  if (!documents) return;
  const offer = offerIn(documents.plan, extension);
  const cost = mostMicroUsd(offer, at - since);
  const { workspaceId, uid: sandboxUid } = sandbox;
  const { extensionId } = attempt;
  const { priceVersion, payer, providerKeyId } = offer;
  const owner = { extensionId, workspaceId, holdId: null, sandboxUid, priceVersion, payer, providerKeyId };
  const kind = isOutrun ? 'hedge' : 'insurance';
  await owe({ tx, at }, owner, { kind, id: `${attempt.attemptId}:${kind}`, amountMicroUsd: cost });
}

/** Tells of the budget levels that a reservation reached. */
export async function tellBudgets(
  { tx, deps, at }: MoneyScope,
  workspaceId: string,
  charges: readonly BudgetCharge[],
): Promise<void> {
  for (const { budget, name, usedMicroUsd, tell } of charges) {
    if (tell === null) continue;
    const id = deps.ids.next('evt');
    await tx.events.append([
      {
        id,
        at,
        type: 'budget.alert',
        workspaceId,
        subject: `workspace:${workspaceId}:budget:${budget.id}:${id}`,
        subjectSeq: 1,
        sandboxUid: null,
        sandboxId: null,
        generation: null,
        state: null,
        previousState: null,
        actor: 'atm',
        consumer: {},
        details: {
          budget_id: budget.id,
          scope: budget.scope,
          name,
          period: budget.period,
          percent: tell,
          used_micro_usd: usedMicroUsd,
          limit_micro_usd: budget.limitMicroUsd,
        },
      },
    ]);
  }
}
