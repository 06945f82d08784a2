import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allocateHostCost, breakEven } from './host-cost.ts';

const HOUR = 3_600_000;
const capacity = { millicpu: 8_000, memoryMb: 16_384, sandboxes: null };

describe('the cost of a host', () => {
  it('the cost of a host is computed as in the guide', () => {
    // Forty cents an hour for a day; two sandboxes of half the machine for six hours each, at different times.
    const uses = [0, 6].map((start) => ({
      from: start * HOUR,
      to: (start + 6) * HOUR,
      millicpu: 4_000,
      memoryMb: 2_048,
    }));
    const cost = allocateHostCost(400_000, capacity, { from: 0, to: 24 * HOUR }, uses);
    expect(cost).toEqual({
      totalMicroUsd: 9_600_000,
      usesMicroUsd: [1_200_000, 1_200_000],
      usedMicroUsd: 2_400_000,
      idleMicroUsd: 7_200_000,
      utilisation: 0.25,
    });
    // The same twelve hours cost $12 elsewhere: the machine pays from a fifth of its time on.
    expect(breakEven(cost, 12_000_000)).toBeCloseTo(0.2);
  });

  it('the cost of a host is divided without a remainder or a double count', () => {
    const use = fc
      .tuple(
        fc.integer({ min: -5, max: 30 }),
        fc.integer({ min: 0, max: 30 }),
        fc.integer({ min: 0, max: 16_000 }),
        fc.integer({ min: 0, max: 32_000 }),
      )
      .map(([start, hours, millicpu, memoryMb]) => ({
        from: start * HOUR + 7,
        to: (start + hours) * HOUR,
        millicpu,
        memoryMb,
      }));
    const limits = fc.record({
      millicpu: fc.option(fc.integer({ min: 1, max: 64_000 })),
      memoryMb: fc.option(fc.integer({ min: 1, max: 64_000 })),
      sandboxes: fc.option(fc.integer({ min: 1, max: 50 })),
    });
    fc.assert(
      fc.property(fc.array(use, { maxLength: 12 }), limits, fc.nat(5_000_000), (uses, known, rate) => {
        const cost = allocateHostCost(rate, known, { from: 0, to: 24 * HOUR }, uses);
        expect(cost.totalMicroUsd).toBe(rate * 24);
        expect(cost.usedMicroUsd + cost.idleMicroUsd).toBe(cost.totalMicroUsd);
        expect(cost.idleMicroUsd).toBeGreaterThanOrEqual(0);
        expect(cost.utilisation).toBeLessThanOrEqual(1);
      }),
    );
  });
});
