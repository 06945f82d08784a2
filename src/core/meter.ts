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
  /** Usage before `since`, in pico-USD × milliseconds. */
  readonly accrued: bigint;
  /** Milliseconds before `since` that were billed at a rate above zero. */
  readonly billedMs: number;
  readonly createFeeMicroUsd: number;
  readonly minimumSeconds: number;
  readonly chargedMicroUsd: number;
  readonly estimateMicroUsd: number;
}

const PICO_MS_PER_MICRO_SECOND_USD = 1_000_000_000n;

/** Time never runs backwards on a bill: a clock that jumps back adds nothing. */
function elapsedMs(meter: MeterRecord, at: number): bigint {
  return BigInt(Math.max(0, Math.floor(at - meter.since)));
}

/**
 * Everything this meter is worth at `at`, rounded down once. Charges are differences of this, so the total does not
 * depend on how often it was asked.
 */
export function cumulativeMicroUsd(meter: MeterRecord, at: number): number {
  const used = meter.accrued + meter.rate * elapsedMs(meter, at);
  const minimum = meter.runningRate * BigInt(meter.minimumSeconds) * 1000n;
  const owed = used > minimum ? used : minimum;
  return meter.createFeeMicroUsd + Number(owed / PICO_MS_PER_MICRO_SECOND_USD);
}

/** Moves the meter's base to `at` and continues at `rate`: pause, resume, a tick, or the end. */
export function rebase(meter: MeterRecord, at: number, rate: bigint): MeterRecord {
  const ms = elapsedMs(meter, at);
  return {
    ...meter,
    accrued: meter.accrued + meter.rate * ms,
    billedMs: meter.billedMs + (meter.rate > 0n ? Number(ms) : 0),
    rate,
    since: Math.max(meter.since, at),
  };
}

/** What `seconds` at `rate` cost, rounded up: a hold must cover any rounding of the charges under it. */
export function costMicroUsd(rate: bigint, seconds: number): number {
  const exact = rate * BigInt(Math.ceil(seconds));
  return Number((exact + 999_999n) / 1_000_000n);
}
