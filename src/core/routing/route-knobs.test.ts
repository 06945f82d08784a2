import { describe, expect, it } from 'vitest';
import { ABLE, sampleHeader, sampleRouteInput } from '../../../tests/support/route-samples.ts';
import type { BackendStanding } from '../../contract/extensions/backend-standing.ts';
import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import type { Price } from '../../contract/money/money.ts';
import type { ProfileInput } from '../../contract/profiles/profile.ts';
import { priceOrFree } from '../credits/pricing.ts';
import { unmeasured } from '../health/standing.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import { decide, rankedCandidates } from './routing.ts';

type Route = NonNullable<ProfileInput['route']>;

function backend(id: string, perSecond: number, over: Partial<Price> = {}): ExtensionHeader {
  const rate = { base_pico_usd_per_second: String(perSecond * 1_000_000) };
  return sampleHeader(id, { price: { ...priceOrFree(null), version: 'p1', ...rate, ...over } });
}

function waits(times: Readonly<Record<string, number>>): Record<string, BackendStanding> {
  const known = Object.entries(times).map(([id, wait_ms]) => [
    id,
    { ...unmeasured('healthy', 'fast'), wait_ms, measured: true },
  ]);
  return Object.fromEntries(known) as Record<string, BackendStanding>;
}

const CHEAP_SLOW = backend('ext.cheap', 1);
const DEAR_QUICK = backend('ext.dear', 4);
const BOTH = [CHEAP_SLOW, DEAR_QUICK];
const STANDING = waits({ 'ext.cheap': 20_000, 'ext.dear': 500 });

function planned(route: Route, extensions = BOTH, standing = STANDING, profile: Partial<ProfileInput> = {}) {
  return decide(sampleRouteInput({ ...profile, route }, extensions, { standing }));
}
const first = (...args: Parameters<typeof planned>) => rankedCandidates(planned(...args))[0]?.extension;

describe('knobs of a route', () => {
  it('sort ranks by price or by waiting alone, in place of the strategy', () => {
    expect(first({ sort: 'price', strategy: 'lowest-latency' })).toBe('ext.cheap');
    expect(first({ sort: 'latency', strategy: 'lowest-cost' })).toBe('ext.dear');
  });

  it('value_of_time decides between money and waiting', () => {
    expect(first({ value_of_time: 0.1 })).toBe('ext.cheap');
    expect(first({ value_of_time: 100 })).toBe('ext.dear');
  });

  it('expect.duration weighs the price by how long it will be paid', () => {
    expect(first({ expect: { duration: '30s' } })).toBe('ext.dear');
    expect(first({ value_of_time: 1, expect: { duration: '1h' } })).toBe('ext.cheap');
  });

  it('preferred_max_tti puts the slow last and leaves none out', () => {
    const plan = planned({ strategy: 'lowest-cost', preferred_max_tti: 5 });
    expect(rankedCandidates(plan).map(({ extension }) => extension)).toEqual(['ext.dear', 'ext.cheap']);
    expect(first({ strategy: 'lowest-cost', preferred_max_tti: 30 })).toBe('ext.cheap');
  });

  it('affinity_key keeps to one candidate of similar rank, spreads keys, and leaves a much worse candidate', () => {
    const alike = ['a', 'b', 'c', 'd'].map((name) => backend(`ext.${name}`, 10));
    const standing = waits(Object.fromEntries(alike.map(({ id }) => [id, 500])));
    const of = (key: string, among = alike) =>
      first({ strategy: 'lowest-cost', affinity_key: key }, among, standing);
    const keys = Array.from({ length: 40 }, (_, n) => `user-${n}`);
    for (const key of keys) expect(of(key)).toBe(of(key, [...alike].reverse()));
    expect(new Set(keys.map((key) => of(key))).size).toBe(4);
    const home = of('user-1');
    const others = alike.filter(({ id }) => id !== home);
    const raised = (perSecond: number) => [...others, backend(home as string, perSecond)];
    expect(of('user-1', raised(11))).toBe(home);
    expect(of('user-1', raised(20))).not.toBe(home);
    // When a backend comes or goes, only the keys of that one move.
    for (const key of keys) if (of(key) !== home) expect(of(key, others)).toBe(of(key));
  });

  it.each([
    ['vcpu_hour', { vcpu_pico_usd_per_second: '10000000' }],
    ['gib_hour', { gib_pico_usd_per_second: '10000000' }],
    ['create', { create_fee_micro_usd: 36_000 }],
  ] as [keyof NonNullable<NonNullable<Route['constraints']>['max_price']>, Partial<Price>][])(
    'max_price.%s is a ceiling on the price',
    (name, over) => {
      const sells = [backend('ext.x', 0, over)];
      const codes = (usd: number) =>
        planned({ constraints: { max_price: { [name]: usd } } }, sells, {}).candidates[0]?.excluded_by.map(
          ({ code }) => code,
        );
      expect(codes(0.036)).toEqual([]);
      expect(codes(0.0359)).toEqual(['max_price']);
    },
  );

  const dollarsAnHour = (usd: number) => String(Math.round((usd * 1e12) / 3600));
  it.each([
    [
      'a region',
      'vcpu_hour',
      { vcpu_pico_usd_per_second: '14000000', region_multipliers: { eu: 3 } },
      0.1512,
    ],
    ['a base rate', 'vcpu_hour', { base_pico_usd_per_second: dollarsAnHour(0.2) }, 0.2],
    ['a base rate', 'gib_hour', { base_pico_usd_per_second: dollarsAnHour(0.2) }, 0.2],
    ['a size', 'vcpu_hour', { shapes: [{ vcpu: 1, memory_mb: 2048, usd: 1.008 }] }, 1.008],
    ['a size', 'gib_hour', { shapes: [{ vcpu: 1, memory_mb: 2048, usd: 1.008 }] }, 1.008],
    ['a larger size', 'vcpu_hour', { shapes: [{ vcpu: 4, memory_mb: 8192, usd: 0.4 }] }, 0.4],
  ] as const)('max_price counts %s towards %s', (_what, name, { ...over }, paid) => {
    const shapes =
      'shapes' in over
        ? over.shapes.map(({ usd, ...size }) => ({
            ...size,
            name: 's',
            pico_usd_per_second: dollarsAnHour(usd),
          }))
        : undefined;
    const sells = [backend('ext.x', 0, { ...over, ...(shapes && { shapes }) } as Partial<Price>)];
    const codes = (usd: number) =>
      planned(
        { constraints: { region: 'eu', max_price: { [name]: usd } } },
        sells,
        {},
      ).candidates[0]?.excluded_by.map(({ code }) => code);
    expect(codes(paid + 0.0001)).toEqual([]);
    expect(codes(paid - 0.0001)).toEqual(['max_price']);
  });

  it('max_price excludes a GPU whose price is not separate from that of its size, with a reason', () => {
    const shapes = [{ name: 'gpu', vcpu: 8, memory_mb: 65_536, pico_usd_per_second: '500000000' }];
    const able = { ...backend('ext.x', 0, { shapes }), capabilities: { ...ABLE, gpu: ['h100'] } };
    const route = { constraints: { gpu: 'h100', max_price: { gpu_hour: 1_000 } } };
    const [candidate] = planned(route, [able], {}, { resources: { gpu: 'h100' } }).candidates;
    expect(candidate?.excluded_by).toContainEqual({
      code: 'max_price',
      detail: expect.stringContaining('cannot be compared'),
    });
  });

  it.each([
    ['gpu', { gpu: 'h100' }, {}],
    ['data_residency', { data_residency: 'us' }, {}],
    ['ports', { ports: true }, { ports: false }],
    ['pty', { pty: true }, { pty: false }],
    ['watch', { watch: true }, { watch: false }],
    ['ssh', { ssh: true }, { ssh: false }],
    ['dead_man', { dead_man: true }, { dead_man: 'none' }],
    ['hosting', { hosting: 'self-hosted' }, {}],
  ] as [string, NonNullable<ProfileInput['requires']>, Partial<CapabilityVector>][])(
    'each knob of a route requires %s, or leaves the candidate out with a reason',
    (code, requires, vector) => {
      const able = { ...CHEAP_SLOW, capabilities: { ...ABLE, ...vector } };
      const [candidate] = planned({}, [able], {}, { requires }).candidates;
      expect(candidate).toMatchObject({ rank: null, excluded_by: [{ code }] });
    },
  );
});
