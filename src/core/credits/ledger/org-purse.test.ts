import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { divide } from './org-purse.ts';

const amount = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const contributions = fc
  .uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 12 })
  .chain((ids) =>
    fc.tuple(...ids.map((workspaceId) => amount.map((microUsd) => ({ workspaceId, microUsd })))),
  );

describe('the division of a shared purse', () => {
  it('shares of a divided purse add up to what is left, each within a micro-dollar of its exact part', () => {
    fc.assert(
      fc.property(amount, contributions, (left, paid) => {
        const shares = divide(left, paid);
        const sum = [...shares.values()].reduce((total, share) => total + BigInt(share), 0n);
        expect(sum).toBe(BigInt(left));
        const all = paid.reduce((total, { microUsd }) => total + BigInt(microUsd), 0n);
        if (all === 0n) return;
        for (const { workspaceId, microUsd } of paid) {
          const apart = BigInt(shares.get(workspaceId) as number) * all - BigInt(left) * BigInt(microUsd);
          expect(apart < all && apart > -all).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('the order in which workspaces are named changes no share', () => {
    fc.assert(
      fc.property(amount, contributions, (left, paid) => {
        expect(divide(left, [...paid].reverse())).toEqual(divide(left, paid));
      }),
    );
  });

  it.each([
    [[100, 100], 200, [100, 100]],
    [[100, 0], 200, [200, 0]],
    [[1, 1], 3, [2, 1]],
    [[0, 0], 5, [3, 2]],
    [[-50, 10], 5, [0, 5]],
  ] as const)('%j put in and %d left give %j', (paid, left, expected) => {
    const shares = divide(
      left,
      paid.map((microUsd, index) => ({ workspaceId: `w${index}`, microUsd })),
    );
    expect(paid.map((_, index) => shares.get(`w${index}`))).toEqual(expected);
  });
});
