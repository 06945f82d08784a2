import { describe, expect, it } from 'vitest';
import { sampleHeader, sampleRecipe, sampleRouteInput } from '../../../tests/support/route-samples.ts';
import { sampleMeter } from '../../store/suite/sample-records.ts';
import { priceOrFree } from '../credits/pricing.ts';
import { expectedUse } from './expected-use.ts';
import { finishedUse, UseBook } from './learned-use.ts';
import { decide } from './routing.ts';

const LIFE = { workspaceId: 'w', profileId: 'profile.test', cpuShare: null, memoryShare: null };

function lived(lives: readonly number[], workspaceId = 'w'): UseBook {
  const book = new UseBook();
  for (const [n, seconds] of lives.entries()) book.observe({ ...LIFE, id: `m${n}`, workspaceId, seconds });
  return book;
}

describe('learned lifetime of a profile’s sandboxes', () => {
  it('the lifetime of a profile’s sandboxes is unknown for few samples, and is the mean of many', () => {
    expect(lived([60, 60, 60, 60, 60, 60, 60]).learned('w', 'profile.test')).toBeNull();
    const ten = lived([10, 10, 10, 10, 10, 10, 10, 10, 10, 910]);
    expect(ten.learned('w', 'profile.test')).toMatchObject({ seconds: 100, samples: 10 });
  });

  it('the lifetime of a profile’s sandboxes counts each life once, and forgets old ones', () => {
    const book = lived(Array(300).fill(5));
    book.observe({ ...LIFE, id: 'm299', seconds: 5 });
    expect(book.learned('w', 'profile.test')).toMatchObject({ seconds: 5, samples: 100 });
  });

  it('the lifetime of a profile’s sandboxes is not visible to another workspace', () => {
    expect(lived(Array(20).fill(5), 'other').learned('w', 'profile.test')).toBeNull();
  });
});

describe('learned share of the size', () => {
  it('the learned share is weighed by the length of each life, and unknown for few samples', () => {
    const book = new UseBook();
    for (let n = 0; n < 9; n += 1)
      book.observe({ ...LIFE, id: `m${n}`, seconds: 10, cpuShare: 1, memoryShare: n < 7 ? 0.5 : null });
    book.observe({ ...LIFE, id: 'long', seconds: 910, cpuShare: 0 });
    const { cpu, memory } = book.learned('w', 'profile.test') ?? {};
    expect(cpu).toEqual({ share: 0.09, samples: 10 });
    expect(memory).toBeNull();
  });

  it('the learned share is reported after the end, and counts once', () => {
    const book = lived(Array(10).fill(60));
    expect(book.learned('w', 'profile.test')?.cpu).toBeNull();
    for (let n = 0; n < 10; n += 1) book.observe({ ...LIFE, id: `m${n}`, seconds: 60, cpuShare: 0.5 });
    expect(book.learned('w', 'profile.test')).toMatchObject({
      samples: 10,
      cpu: { share: 0.5, samples: 10 },
    });
  });

  it('the learned share is a part of processors and memory, never more than the whole', () => {
    const closed = { ...sampleMeter('m'), openedAt: 0, closedAt: 10_000, millicpu: 2000, memoryMb: 512 };
    expect(finishedUse({ ...closed, cpuMs: 5_000, peakMemoryMb: 128 })).toMatchObject({
      seconds: 10,
      cpuShare: 0.25,
      memoryShare: 0.25,
    });
    expect(finishedUse({ ...closed, cpuMs: 90_000, peakMemoryMb: 900 })).toMatchObject({
      cpuShare: 1,
      memoryShare: 1,
    });
  });

  it('the learned share decides between a backend that bills work and one that bills size', () => {
    const price = { ...priceOrFree(null), version: 'p1' };
    const worked = sampleHeader('ext.worked', {
      price: { ...price, vcpu_pico_usd_per_second: '40000000', vcpu_basis: 'active' },
    });
    const sized = sampleHeader('ext.sized', { price: { ...price, vcpu_pico_usd_per_second: '20000000' } });
    const route = { route: { strategy: 'lowest-cost' as const } };
    const first = (share: number) => {
      const book = new UseBook();
      for (let n = 0; n < 8; n += 1) book.observe({ ...LIFE, id: `m${n}`, seconds: 60, cpuShare: share });
      const expected = expectedUse(sampleRecipe(route), book.learned('w', 'profile.test'));
      const input = sampleRouteInput(route, [worked, sized], { expected });
      const plan = decide(input);
      expect(plan.expected).toMatchObject({ cpu_utilisation: share, cpu_from: 'learned', cpu_samples: 8 });
      expect(JSON.stringify(decide(JSON.parse(JSON.stringify(input))))).toBe(JSON.stringify(plan));
      return plan.candidates[0]?.extension;
    };
    expect(first(0.2)).toBe('ext.worked');
    expect(first(0.8)).toBe('ext.sized');
  });
});

describe('the use that is expected', () => {
  const learned = { seconds: 120, samples: 40, cpu: null, memory: null };

  it('the expected use is the request’s, then the learned one, then the whole ttl', () => {
    const told = sampleRecipe({ route: { expect: { duration: 30, cpu_utilisation: 0.5 } } });
    expect(expectedUse(told, learned)).toMatchObject({
      seconds: 30,
      cpuUtilisation: 0.5,
      evidence: { seconds_from: 'request', cpu_from: 'request' },
    });
    expect(expectedUse(sampleRecipe(), learned)).toMatchObject({
      seconds: 120,
      evidence: { seconds_from: 'learned', cpu_from: 'assumed', samples: 40 },
    });
    expect(expectedUse(sampleRecipe())).toMatchObject({
      seconds: 3600,
      evidence: { seconds_from: 'ttl', samples: 0 },
    });
  });

  it('the expected use never lasts longer than the sandbox may', () => {
    expect(expectedUse(sampleRecipe(), { ...learned, seconds: 99_999 }).seconds).toBe(3600);
  });
});
