import type { Evidence } from '../../contract/money/money.ts';
import type { Payer } from '../tenancy/provider-key.ts';

/** Usage of one generation of one sandbox on one backend. Amounts are exact: nothing is rounded until it is charged. */
export interface MeterRecord {
  readonly id: string;
  readonly sandboxUid: string;
  readonly workspaceId: string;
  readonly generation: number;
  readonly extensionId: string;
  readonly holdId: string;
  readonly priceVersion: string;
  readonly openedAt: number;
  readonly closedAt: number | null;
  /** pico-USD per second while running, and while paused. */
  readonly runningRate: bigint;
  readonly pausedRate: bigint;
  /** The rate in force since `since`. */
  readonly rate: bigint;
  readonly since: number;
  /** The usage before `since`, in pico-USD × milliseconds. */
  readonly accrued: bigint;
  /** Milliseconds before `since` that were billed at a rate above zero. */
  readonly billedMs: number;
  readonly createFeeMicroUsd: number;
  readonly minimumSeconds: number;
  /** The unit in which time is billed. */
  readonly quantumMs: number;
  readonly chargedMicroUsd: number;
  readonly estimateMicroUsd: number;
  /**
   * The time at which the backend ends the sandbox by itself, as the backend confirmed; `null` when its whole life is paid for.
   */
  readonly fundedUntil: number | null;
  /** When the next stretch of its life is to be paid for; `null` when no payment is due. */
  readonly fundAt: number | null;
  /** Since when the money is too little for the next stretch. */
  readonly lowSince: number | null;
  /** The spender and the sandbox, kept with the money when the sandbox's own row is removed. */
  readonly sandboxId: string;
  readonly profileId: string;
  readonly actor: string;
  readonly keyId: string | null;
  readonly runId: string | null;
  /** How well the billed time is known. */
  readonly evidence: Evidence;
  /** The backend's own figure of what it billed, where it was asked. */
  readonly backendMs: number | null;
  /** The part of the billed milliseconds that the backend's figure covers: the rest is by our clock. */
  readonly observedMs: number | null;
  /** The vendor's key that it runs under; `null` for the backend's own configuration. */
  readonly providerKeyId: string | null;
  /** The party that pays. Use under an `own_key` is counted here and billed by the vendor: it is never charged. */
  readonly payer: Payer;
  /** The size of the sandbox, in thousandths of a processor and in MiB. */
  readonly millicpu: number;
  readonly memoryMb: number;
  /** The use of that size by its programs, where the backend counts it. */
  readonly cpuMs: number | null;
  readonly peakMemoryMb: number | null;
}

const PICO_MS_PER_MICRO_SECOND_USD = 1_000_000_000n;

/** Time never runs backwards on a bill: a clock that jumps back adds nothing. */
function elapsedMs(meter: MeterRecord, at: number): bigint {
  return BigInt(Math.max(0, Math.floor(at - meter.since)));
}

/** The prices of a backend, as far as a charge depends on them. */
export interface Terms {
  readonly runningRate: bigint;
  readonly createFeeMicroUsd: number;
  readonly minimumSeconds: number;
  readonly quantumMs: number;
}

/** Returns the charge for `used` pico-USD × milliseconds: at least the minimum, in whole quanta, rounded down once. */
function chargeMicroUsd(terms: Terms, used: bigint): number {
  const { runningRate, createFeeMicroUsd, minimumSeconds, quantumMs } = terms;
  const minimum = runningRate * BigInt(minimumSeconds) * 1000n;
  const quantum = runningRate * BigInt(quantumMs);
  const atLeast = used > minimum ? used : minimum;
  const owed = quantum > 0n ? ((atLeast + quantum - 1n) / quantum) * quantum : atLeast;
  return createFeeMicroUsd + Number(owed / PICO_MS_PER_MICRO_SECOND_USD);
}

/** The most that so much time can be charged under these terms. */
export function mostMicroUsd(terms: Terms, ms: number): number {
  return chargeMicroUsd(terms, terms.runningRate * BigInt(Math.max(0, Math.ceil(ms))));
}

/**
 * Returns the value of all use that this meter counted until `at`, rounded down once. Charges are differences of this value, so
 * the total does not depend on how often it was asked for.
 */
export function cumulativeMicroUsd(meter: MeterRecord, at: number): number {
  return chargeMicroUsd(meter, meter.accrued + meter.rate * elapsedMs(meter, at));
}

/**
 * Returns what must be reserved at `now` so that whatever the backend bills until `until` is covered, whatever it does meanwhile.
 * `unnoticedMs`: time that it billed already and we did not count.
 */
export function neededMicroUsd(meter: MeterRecord, now: number, until: number, unnoticedMs = 0): number {
  const running = rebase(meter, now, meter.runningRate);
  const unnoticed = costMicroUsd(meter.runningRate, unnoticedMs / 1000);
  return Math.max(0, cumulativeMicroUsd(running, until) + unnoticed - meter.chargedMicroUsd);
}

/** Whether the meter ever counted at less than the running rate: only then may the backend have billed more. */
export function mayRunUnnoticed(meter: MeterRecord, now: number): boolean {
  if (meter.pausedRate >= meter.runningRate) return false;
  return meter.rate < meter.runningRate || countedMs(meter, now) < now - meter.openedAt;
}

/** Milliseconds up to `at` that were billed at a rate above zero. */
export function countedMs(meter: MeterRecord, at: number): number {
  return rebase(meter, at, meter.rate).billedMs;
}

/**
 * Moves the meter's base to `at` and continues at `rate`: pause, resume, a tick, or the end. Time after `owedUntil` adds
 * nothing, and does not move the base: a pause begins when it began, however much of the time before it is owed.
 */
export function rebase(meter: MeterRecord, at: number, rate: bigint, owedUntil = at): MeterRecord {
  const ms = elapsedMs(meter, Math.min(at, owedUntil));
  return {
    ...meter,
    accrued: meter.accrued + meter.rate * ms,
    billedMs: meter.billedMs + (meter.rate > 0n ? Number(ms) : 0),
    rate,
    since: Math.max(meter.since, at),
  };
}

/** Returns the cost of `seconds` at `rate`, rounded up: a hold must cover any rounding of the charges under it. */
export function costMicroUsd(rate: bigint, seconds: number): number {
  const exact = rate * BigInt(Math.ceil(seconds));
  return Number((exact + 999_999n) / 1_000_000n);
}

/**
 * Returns the meter with the backend's figure of what it billed, asked at `askedAt`. Answers come late and twice: what was billed
 * stays billed.
 */
export function observed(meter: MeterRecord, saidMs: number, askedAt: number): MeterRecord {
  const backendMs = Math.max(saidMs, meter.backendMs ?? 0);
  const countedThen = countedMs(meter, askedAt) - Math.max(0, meter.since - askedAt);
  const observedMs = Math.max(meter.observedMs ?? 0, Math.min(backendMs, Math.max(0, countedThen)));
  return { ...meter, backendMs, observedMs, evidence: 'provider_observed' };
}

/** How well all of the billed time is known: a backend's figure of mid-life is no evidence for the time after it. */
export function evidenceOf({ evidence, observedMs }: MeterRecord, billedMs: number): Evidence {
  const isCovered = (observedMs ?? 0) >= billedMs;
  return evidence === 'provider_observed' && !isCovered ? 'own_clock' : evidence;
}

/** Returns the part of the billed time that its backend's figure covers; `null` where it was never asked. */
export function observedSeconds({ observedMs }: MeterRecord, billedMs: number): number | null {
  return observedMs === null ? null : Math.min(observedMs, billedMs) / 1000;
}
