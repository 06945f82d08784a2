import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createContext, measure, percentile, rate, summarize } from './harness.ts';

describe('percentile', () => {
  it('percentile is the nearest rank, never an interpolation', () => {
    const samples = [15, 20, 35, 40, 50];
    expect(percentile(samples, 5)).toBe(15);
    expect(percentile(samples, 30)).toBe(20);
    expect(percentile(samples, 40)).toBe(20);
    expect(percentile(samples, 50)).toBe(35);
    expect(percentile(samples, 100)).toBe(50);
  });

  it('percentile is the least sample that enough samples do not exceed', () => {
    const samplesOf = fc.array(fc.integer(), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(samplesOf, fc.integer({ min: 1, max: 100 }), (samples, percent) => {
        const sorted = samples.toSorted((a, b) => a - b);
        const value = percentile(sorted, percent);
        const covered = (limit: (sample: number) => boolean) =>
          (sorted.filter(limit).length / sorted.length) * 100;
        expect(covered((sample) => sample <= value)).toBeGreaterThanOrEqual(percent - 1e-9);
        expect(covered((sample) => sample < value)).toBeLessThan(percent);
      }),
    );
  });

  it('percentile refuses an empty sample and a percentage outside (0, 100]', () => {
    expect(() => percentile([], 50)).toThrow('no samples');
    expect(() => percentile([1], 0)).toThrow('got 0');
    expect(() => percentile([1], 101)).toThrow('got 101');
  });
});

describe('measure', () => {
  it('measure leaves the warm-up out and returns ascending milliseconds', async () => {
    let calls = 0;
    const samples = await measure(5, 2, async () => {
      calls++;
    });
    expect(calls).toBe(7);
    expect(samples).toHaveLength(5);
    expect(samples).toEqual(samples.toSorted((a, b) => a - b));
  });
});

describe('rate', () => {
  it('rate does every operation once and keeps to the concurrency', async () => {
    let calls = 0;
    let underWay = 0;
    let most = 0;
    const samples = await rate({ rounds: 2, operationsPerRound: 10, concurrency: 4 }, async () => {
      calls++;
      most = Math.max(most, ++underWay);
      await new Promise(setImmediate);
      underWay--;
    });
    expect(calls).toBe(20);
    expect(most).toBe(4);
    expect(samples).toHaveLength(2);
    expect(samples.every((perSecond) => perSecond > 0)).toBe(true);
  });
});

describe('summarize', () => {
  it('summarize compares the median with that of the baseline', () => {
    const result = summarize({
      name: 'control.create',
      unit: 'ms',
      samples: [1, 2, 3, 4],
      baseline: [1, 1, 4],
      details: { concurrency: 1 },
    });
    expect(result).toEqual({
      name: 'control.create',
      unit: 'ms',
      n: 4,
      p50: 2,
      p95: 4,
      p99: 4,
      min: 1,
      max: 4,
      concurrency: 1,
      baseline: 1,
      ratio: 2,
    });
  });

  it('summarize gives null where no baseline exists', () => {
    expect(summarize({ name: 'x.y', unit: 'ms', samples: [1] })).toMatchObject({
      baseline: null,
      ratio: null,
    });
  });
});

describe('createContext', () => {
  it('createContext runs a handful of iterations in a smoke run', () => {
    expect(createContext(true).iterations(1000)).toBe(3);
    expect(createContext(true).iterations(1)).toBe(1);
    expect(createContext(false).iterations(1000)).toBe(1000);
  });
});
