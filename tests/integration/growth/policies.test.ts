/** Policies that are compared with each other: rules of the network, and what a workspace lets be routed to. */
import { describe, expect, it } from 'vitest';
import { NetworkPolicy } from '../../../src/contract/profiles/profile.ts';
import type { RoutePolicy } from '../../../src/contract/routing/route.ts';
import { wideningOf } from '../../../src/core/recipe/narrow-network.ts';
import { narrowRoute } from '../../../src/core/recipe/narrow-route.ts';
import { nearestNames } from '../../../src/core/recipe/nearest-names.ts';
import { excesses } from './growth.ts';

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
/** As they come from two documents: no text is the same object as another. */
const fromOutside = <T>(value: unknown): T => JSON.parse(JSON.stringify(value)) as T;

/** As many rules as one profile may have, each with so many paths. */
function network(paths: readonly number[], rules: number): NetworkPolicy {
  const named = paths.map((n) => `/path/of/some/length/${n}`);
  const rule = { host: 'a.example', paths: named, binaries: named };
  return NetworkPolicy.parse(fromOutside({ egress: numbers(rules).map(() => rule) }));
}

describe('work grows no faster than the compared policies', () => {
  it('network: rules with many paths, all of which another rule has', { timeout: 120_000 }, async () => {
    // Made before: what is measured is comparing.
    const pairs = new Map(
      [8, 16, 32, 64].map((paths) => {
        const wanted = network(numbers(paths).reverse(), 200);
        return [paths, { given: network(numbers(paths), 200), wanted }];
      }),
    );
    const run = (paths: number) => {
      const { given, wanted } = pairs.get(paths) ?? { given: network([], 0), wanted: network([], 1) };
      const widening = wideningOf(given, wanted, new Set());
      if (widening !== null) throw new Error(widening);
    };
    expect(await excesses([{ name: 'paths', run }], { least: 8, memory: 1_048_576 })).toEqual([]);
  });

  it('route: lists of backends of a profile and of a request', { timeout: 120_000 }, async () => {
    const run = (count: number) => {
      const ids = numbers(count).map((n) => `ext.backend-${n}`);
      const route = fromOutside<RoutePolicy>({ only: ids, order: ids, fallback: ids, ignore: ids });
      narrowRoute({ id: 'profile.x', extension: null, route } as never, fromOutside(route));
    };
    expect(await excesses([{ name: 'ids', run }], { least: 8, memory: 1_048_576 })).toEqual([]);
  });

  it('names: a long word against names of any length', { timeout: 120_000 }, async () => {
    const cases = [
      { name: 'word', run: (length: number) => nearestNames('a'.repeat(length), ['b'.repeat(40)]) },
      { name: 'names', run: (length: number) => nearestNames('abc', ['b'.repeat(length)]) },
    ];
    expect(await excesses(cases, { least: 4_096 })).toEqual([]);
  });
});
