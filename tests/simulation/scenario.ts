import type { ControlSettings } from '../../src/control/ports/settings.ts';
import { DEFAULT_SETTINGS } from '../../src/control/ports/settings.ts';
import { Prng } from './prng.ts';

export interface BackendPlan {
  readonly id: string;
  readonly createMs: number;
  readonly deleteMs: number;
  readonly capacity: number | null;
}

/** How one seed's run is set up: everything that is fixed before it starts. */
export interface Scenario {
  readonly seed: number;
  readonly operations: number;
  /** Mean time between two client operations. */
  readonly paceMs: number;
  readonly backends: readonly BackendPlan[];
  readonly settings: ControlSettings;
  readonly creditsMicroUsd: number;
  /** What the first workspace may spend in all, or each of its sandboxes' runs; `null` for no budget. */
  readonly budget: {
    readonly scope: 'workspace' | 'actor';
    readonly period: 'day' | 'lifetime';
    readonly limitMicroUsd: number;
  } | null;
  /** How many control-plane processes share the database; with one it is exclusive. */
  readonly replicas: 1 | 2;
  /** Chance that a request to a backend meets a fault, in calm and in a storm. */
  readonly faultRate: number;
  readonly stormRate: number;
  readonly lossRate: number;
  readonly sinkFailureRate: number;
  readonly sinks: number;
  readonly crashes: number;
  readonly jumps: number;
  /** Every so often each backend charges something else: one price, the other, the first again. */
  readonly priceChangeMs: number;
}

export const OPERATIONS_PER_SEED = 200;

function settingsFor(prng: Prng): ControlSettings {
  const forgets = prng.chance(0.3);
  return {
    ...DEFAULT_SETTINGS,
    leaseMs: prng.pick([3_000, 6_000, 12_000]),
    waitMs: prng.pick([5_000, 30_000]),
    retryFirstMs: 400,
    retryMostMs: 6_000,
    stuckAfterTries: 3,
    ambiguousTries: prng.pick([2, 3]),
    hedgeShare: 1,
    teardownTimeoutMs: 6_000,
    operationTimeoutMs: 6_000,
    operationTries: prng.pick([2, 3]),
    deadManGraceMs: prng.pick([5_000, 20_000]),
    activityMs: 3_000,
    checkpointMs: 12_000,
    meterTickMs: prng.pick([5_000, 10_000]),
    fundMs: prng.pick([12_000, 30_000]),
    reconcileMs: prng.pick([8_000, 15_000]),
    maxLiving: prng.chance(0.4) ? prng.between(3, 8) : null,
    keepDestroyedMs: forgets ? 90_000 : DEFAULT_SETTINGS.keepDestroyedMs,
    keepEventsMs: forgets ? 60_000 : DEFAULT_SETTINGS.keepEventsMs,
    keepIdempotencyMs: forgets ? 40_000 : DEFAULT_SETTINGS.keepIdempotencyMs,
  };
}

export function scenarioFor(seed: number): Scenario {
  const prng = new Prng(seed, 'scenario');
  const settings = settingsFor(prng);
  const ids = ['ext.saas-stub', 'ext.saas-stub#b', 'ext.saas-stub#c'].slice(0, prng.pick([1, 2, 2, 3, 3]));
  const weather = prng.weighted([
    ['calm', 2],
    ['normal', 5],
    ['rough', 3],
  ] as const);
  const rates = { calm: 0.004, normal: 0.04, rough: 0.11 };
  return {
    seed,
    operations: OPERATIONS_PER_SEED,
    paceMs: prng.pick([120, 300, 600]),
    backends: ids.map((id, index) => ({
      id,
      createMs: prng.pick([0, 30, 800]),
      deleteMs: prng.pick([0, 20, 600]),
      capacity: index === ids.length - 1 && ids.length > 1 && prng.chance(0.3) ? prng.between(0, 3) : null,
    })),
    settings,
    creditsMicroUsd: prng.pick([40_000_000, 40_000_000, 2_000_000, 600_000]),
    replicas: prng.chance(0.25) ? 2 : 1,
    faultRate: rates[weather],
    stormRate: weather === 'calm' ? 0 : 0.5,
    lossRate: rates[weather] / 3,
    sinkFailureRate: prng.pick([0, 0.03, 0.15]),
    sinks: prng.chance(0.3) ? 2 : 1,
    crashes: prng.between(5, 12),
    jumps: prng.pick([0, 1, 2]),
    priceChangeMs: prng.pick([4_000, 20_000, 1_000_000_000]),
    budget: prng.chance(0.4)
      ? {
          scope: prng.pick(['workspace', 'actor'] as const),
          period: prng.pick(['day', 'lifetime'] as const),
          limitMicroUsd: prng.pick([400_000, 2_000_000, 20_000_000]),
        }
      : null,
  };
}
