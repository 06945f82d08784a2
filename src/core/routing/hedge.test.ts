import { describe, expect, it } from 'vitest';
import type { BackendStanding } from '../../contract/extensions/backend-standing.ts';
import type { RouteCandidate, RoutePolicy } from '../../contract/routing/route.ts';
import { priceOrFree, quoteFor } from '../credits/pricing.ts';
import { HedgeBudget } from '../health/hedge-budget.ts';
import { LatencySamples } from '../health/latency-samples.ts';
import { unmeasured } from '../health/standing.ts';
import { planHedge } from './hedge.ts';

const resources = { cpu: 1, memory_mb: 1024, disk_mb: null, pids: null, open_files: null, gpu: null };

function candidate(extension: string, standing: Partial<BackendStanding>, feeMicroUsd = 0): RouteCandidate {
  const price = { ...priceOrFree(null), create_fee_micro_usd: feeMicroUsd };
  const expected = { seconds: 60, cpuUtilisation: 1, memoryUtilisation: 1 };
  return {
    extension,
    host: null,
    rank: 0,
    excluded_by: [],
    score: {},
    quote: quoteFor({ extension, price, resources, seconds: 60, region: null, expected }),
    standing: { ...unmeasured('healthy', 'fast'), ...standing },
  };
}

/** The recorded times of two vendors, as in the research: the median, the 95th percentile, the rest beyond it. */
const MODAL = { p50_ms: 1723, p95_ms: 2309, tail_ms: 2200 };
const E2B = { p50_ms: 491, p95_ms: 685, tail_ms: 290 };
const DAYTONA = { p50_ms: 186, p95_ms: 492, tail_ms: 150 };

function plan(ranked: readonly RouteCandidate[], route: RoutePolicy = {}, more: object = {}) {
  return planHedge({ route: { hedge: 'auto', ...route }, mounts: [], setupRun: [], ...more }, ranked);
}

describe('a second attempt', () => {
  it('a second attempt is planned where the tail is longer than a start elsewhere takes', () => {
    expect(plan([candidate('modal', MODAL), candidate('e2b', E2B)])).toMatchObject({
      extension: 'e2b',
      after_ms: 2309,
      saves_ms: 2200 - 491,
    });
    expect(plan([candidate('daytona', DAYTONA), candidate('e2b', E2B)])).toMatchObject({ after_ms: null });
  });

  it('a second attempt is not planned where the discarded one costs more than the waiting is worth', () => {
    const ranked = [candidate('modal', MODAL), candidate('sail', E2B, 10_000)];
    expect(plan(ranked)).toMatchObject({ after_ms: null, cost_micro_usd: 10_000 });
    expect(plan(ranked, { value_of_time: 100 })).toMatchObject({ after_ms: 2309 });
  });

  it('a second attempt is not planned unmeasured, alone, unasked, or with what cannot be mounted twice', () => {
    const both = [candidate('modal', MODAL), candidate('e2b', E2B)];
    expect(plan([candidate('new', {}), candidate('e2b', E2B)])).toMatchObject({ after_ms: null });
    expect(plan([candidate('modal', MODAL)])).toMatchObject({ after_ms: null, extension: null });
    expect(planHedge({ route: {}, mounts: [], setupRun: [] }, both)).toBeUndefined();
    const own = { ...candidate('e2b', E2B), provider_key: { provider_key_id: 'pky_1', scope: 'workspace' } };
    expect(plan([candidate('modal', MODAL), own as RouteCandidate])).toMatchObject({ after_ms: null });
    const volumes = [{ name: 'v', path: '/v', volumeId: null, extensionId: null }];
    expect(plan(both, {}, { volumes })).toMatchObject({ after_ms: null });
  });

  it('a second attempt with setup commands, whose time is unknown, is planned only where the request says when', () => {
    const both = [candidate('modal', MODAL), candidate('e2b', E2B)];
    const setupRun = ['make'];
    expect(plan(both, {}, { setupRun })).toMatchObject({ after_ms: null });
    expect(plan(both, { hedge_after: 5 }, { setupRun })).toMatchObject({ after_ms: 5000 });
  });

  it('a second attempt goes to another host of the same backend before it goes elsewhere', () => {
    const ours = { ...candidate('ssh', MODAL), host: 'a', other_hosts: ['b'] };
    expect(plan([{ ...ours, standing: { ...ours.standing, p50_ms: 100 } as BackendStanding }])).toMatchObject(
      {
        extension: 'ssh',
        host: 'b',
        after_ms: 2309,
      },
    );
  });

  it('a second attempt starts when the request sets a time, without anything learned', () => {
    const both = [candidate('new', {}), candidate('other', {})];
    expect(plan(both, { hedge_after: 0.5 })).toMatchObject({ after_ms: 500 });
  });
});

describe('the budget', () => {
  it('the budget of hedges allows no more than its share, and few at once', () => {
    const budget = new HedgeBudget();
    let taken = 0;
    for (let n = 1; n <= 1000; n += 1) {
      budget.earn();
      if (budget.take(0.03)) taken += 1;
      expect(taken).toBeLessThanOrEqual(n * 0.03);
    }
    expect(taken).toBe(29);
    for (let n = 0; n < 10_000; n += 1) budget.earn();
    expect(Array.from({ length: 20 }, () => budget.take(0.03)).filter(Boolean)).toHaveLength(5);
    expect(budget.take(0)).toBe(false);
  });
});

describe('the spread of waits', () => {
  it('the spread of waits is known from twenty samples on', () => {
    const samples = new LatencySamples();
    for (let ms = 1; ms <= 19; ms += 1) samples.observe(ms);
    expect(samples.shape()).toBeNull();
    samples.observe(1000);
    expect(samples.shape()).toEqual({ p50Ms: 10, p95Ms: 19, tailMs: 981 });
  });
});
