import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ABLE, sampleHeader, sampleRouteInput } from '../../../tests/support/route-samples.ts';
import type { BackendStanding } from '../../contract/extensions/backend-standing.ts';
import { CapabilityVector } from '../../contract/extensions/capability.ts';
import type { Price } from '../../contract/money/money.ts';
import type { RoutePolicy } from '../../contract/routing/route.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import { canonicalJson } from '../recipe/canonical-json.ts';
import type { RouteInput } from './routing.ts';
import { decide, rankedCandidates } from './routing.ts';

const NAMES = ['ext.a', 'ext.b', 'ext.c', 'ext.d', 'ext.e'];

const vectors = fc.record({
  isolation: fc.constantFrom(['container'], ['container', 'gvisor'], ['microvm']),
  hosting: fc.constantFrom('self-hosted', 'saas'),
  regions: fc.constantFrom(['eu'], ['us'], ['eu', 'us'], ['eu-west-1', 'eu-north-1'], []),
  snapshot: fc.constantFrom('none', 'filesystem', 'memory'),
  latency_class: fc.constantFrom('instant', 'fast', 'standard', 'slow'),
});

const prices: fc.Arbitrary<Price> = fc.record({
  version: fc.constant('p'),
  create_fee_micro_usd: fc.nat(10_000),
  base_pico_usd_per_second: fc.oneof(fc.constant('0'), fc.nat(60_000_000).map(String)),
  vcpu_pico_usd_per_second: fc.nat(60_000_000).map(String),
  gib_pico_usd_per_second: fc.nat(12_000_000).map(String),
  gpu_pico_usd_per_second: fc.constant('0'),
  vcpu_basis: fc.constantFrom('allocated', 'active', 'max_request_actual'),
  bills_when_paused: fc.boolean(),
  minimum_seconds: fc.constantFrom(0, 60),
  quantum_ms: fc.constantFrom(1, 1000, 60_000),
});

const standings: fc.Arbitrary<BackendStanding> = fc.record({
  probe: fc.constantFrom('healthy', 'healthy', 'healthy', 'unknown', 'unhealthy', 'undetected'),
  breaker: fc.constantFrom('closed', 'closed', 'open', 'half_open'),
  key_refused: fc.constantFrom(false, false, false, true),
  wait_ms: fc.nat(60_000),
  measured: fc.boolean(),
  success: fc.double({ min: 0, max: 1, noNaN: true }),
  samples: fc.nat(100),
  in_flight: fc.nat(50),
});

const ceiling = fc.nat(2_000).map((thousandths) => thousandths / 1_000);
const ceilings = fc.record(
  { vcpu_hour: ceiling, gib_hour: ceiling, create: fc.nat(20).map((thousandths) => thousandths / 1_000) },
  { requiredKeys: [] },
);
/** The ways to sell: by units, in sizes, dearer or cheaper by region. */
const sales = fc.record(
  {
    region_multipliers: fc.record({ eu: fc.integer({ min: 500, max: 3_000 }).map((n) => n / 1000) }),
    shapes: fc.array(
      fc.record({
        name: fc.constant('s'),
        vcpu: fc.constantFrom(1, 2, 8),
        memory_mb: fc.constantFrom(1024, 4096, 16_384),
        pico_usd_per_second: fc.nat(200_000_000).map(String),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  },
  { requiredKeys: [] },
);

const routes: fc.Arbitrary<RoutePolicy> = fc.record(
  {
    strategy: fc.constantFrom('prefer-self-hosted', 'lowest-cost', 'lowest-latency'),
    order: fc.subarray(NAMES, { maxLength: 2 }),
    fallback: fc.subarray(NAMES, { maxLength: 2 }),
    sort: fc.constantFrom('price', 'latency'),
    value_of_time: fc.nat(200),
    preferred_max_tti: fc.integer({ min: 1, max: 60 }),
    affinity_key: fc.constantFrom('alice', 'bob'),
    constraints: fc.record(
      {
        max_cost_per_hour: fc.double({ min: 0, max: 0.3, noNaN: true }),
        max_total_cost: fc.double({ min: 0, max: 0.6, noNaN: true }),
        max_price: ceilings,
        region: fc.constantFrom('eu', 'us'),
        data_residency: fc.constantFrom('eu', 'us'),
        snapshot: fc.constantFrom('filesystem', 'memory'),
        require_isolation: fc.constantFrom('container', 'gvisor', 'microvm'),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
);

interface World {
  readonly extensions: ExtensionHeader[];
  readonly standing: Record<string, BackendStanding>;
}

const worlds: fc.Arbitrary<World> = fc
  .array(fc.tuple(vectors, prices, standings), { minLength: 1, maxLength: NAMES.length })
  .map((drawn) => ({
    extensions: drawn.map(([vector, price], index) =>
      sampleHeader(NAMES[index] as string, {
        capabilities: CapabilityVector.parse({ ...ABLE, ...vector }),
        price,
      }),
    ),
    standing: Object.fromEntries(drawn.map(([, , standing], index) => [NAMES[index], standing])),
  }));

function inputOf(world: World, route: RoutePolicy, changes: Partial<RouteInput> = {}): RouteInput {
  const profile = { resources: { cpu: 1, memory_mb: 2048 }, route };
  return sampleRouteInput(profile, world.extensions, { standing: world.standing, ...changes });
}

const rankOf = (input: RouteInput, id: string) =>
  decide(input).candidates.find((candidate) => candidate.extension === id)?.rank ?? null;

describe('routing of every request, catalogue and state of health', () => {
  it('the same input gives the same plan, also after it was stored', () => {
    fc.assert(
      fc.property(worlds, routes, (world, route) => {
        const input = inputOf(world, route);
        const stored = JSON.parse(JSON.stringify(input)) as RouteInput;
        expect(canonicalJson(decide(stored))).toBe(canonicalJson(decide(input)));
        const shuffled = { ...input, extensions: [...input.extensions].reverse() };
        expect(canonicalJson(decide(shuffled))).toBe(canonicalJson(decide(input)));
      }),
    );
  });

  it('every candidate has a rank or a reason, never both', () => {
    fc.assert(
      fc.property(worlds, routes, (world, route) => {
        const plan = decide(inputOf(world, route));
        expect(plan.candidates).toHaveLength(world.extensions.length);
        for (const { rank, excluded_by } of plan.candidates)
          expect(rank === null).toBe(excluded_by.length > 0);
        expect(rankedCandidates(plan).map(({ rank }) => rank)).toEqual(
          rankedCandidates(plan).map((_, n) => n),
        );
      }),
    );
  });

  it('raising a price never raises a rank', () => {
    const raise = fc.record({ vcpu: fc.nat(60_000_000), fee: fc.nat(10_000) });
    fc.assert(
      fc.property(worlds, routes, fc.nat(4), raise, (world, route, index, { vcpu, fee }) => {
        const target = world.extensions[index % world.extensions.length] as ExtensionHeader;
        const price = target.price as Price;
        const dearer = {
          ...price,
          vcpu_pico_usd_per_second: String(BigInt(price.vcpu_pico_usd_per_second) + BigInt(vcpu)),
          create_fee_micro_usd: price.create_fee_micro_usd + fee,
        };
        const after = {
          ...world,
          extensions: world.extensions.map((one) => (one === target ? { ...one, price: dearer } : one)),
        };
        const before = rankOf(inputOf(world, route), target.id);
        const later = rankOf(inputOf(after, route), target.id);
        if (later === null) return;
        // Panic may exclude or admit others; among those ranked both times the order counts.
        expect(before).not.toBeNull();
        expect(later).toBeGreaterThanOrEqual(before as number);
      }),
      { numRuns: 500 },
    );
  });

  it('a hard constraint is never violated', () => {
    fc.assert(
      fc.property(worlds, routes, (world, route) => {
        const constraints = route.constraints ?? {};
        for (const { extension, quote } of rankedCandidates(decide(inputOf(world, route)))) {
          const { capabilities } = world.extensions.find(({ id }) => id === extension) as ExtensionHeader;
          if (constraints.region) expect(capabilities.regions).toContain(constraints.region);
          if (constraints.data_residency) {
            expect(capabilities.regions.length).toBeGreaterThan(0);
            for (const region of capabilities.regions)
              expect(region.split('-')[0]).toBe(constraints.data_residency);
          }
          if (constraints.max_cost_per_hour != null)
            expect(quote?.micro_usd_per_hour).toBeLessThanOrEqual(constraints.max_cost_per_hour * 1e6);
          if (constraints.max_total_cost != null)
            expect(quote?.max_charge_micro_usd).toBeLessThanOrEqual(constraints.max_total_cost * 1e6);
          if (constraints.require_isolation === 'microvm')
            expect(capabilities.isolation).toContain('microvm');
        }
      }),
    );
  });

  it('max_price: nothing that is used costs more for each unit that was asked for', () => {
    const sizes = fc.record({ cpu: fc.constantFrom(0.5, 1, 4), memory_mb: fc.constantFrom(512, 2048, 8192) });
    const sells = fc.array(fc.tuple(prices, sales), { minLength: 1, maxLength: NAMES.length });
    let compared = 0;
    fc.assert(
      fc.property(sells, ceilings, sizes, fc.boolean(), (drawn, max_price, resources, isInEu) => {
        const extensions = drawn.map(([price, over], index) =>
          sampleHeader(NAMES[index] as string, { price: { ...price, ...over } as Price }),
        );
        const constraints = { max_price, ...(isInEu && { region: 'eu' }) };
        const input = sampleRouteInput({ resources, route: { constraints } }, extensions, { standing: {} });
        for (const { extension, quote } of rankedCandidates(decide(input))) {
          const price = extensions.find(({ id }) => id === extension)?.price as Price;
          const times = isInEu ? (price.region_multipliers?.eu ?? 1) : 1;
          const hourly = (Number(quote?.pico_usd_per_second) * 3600) / 1e12;
          // The bill without what the other unit costs by itself, for each that was asked for.
          const alone = (rate: string, units: number) =>
            price.shapes ? 0 : (Number(rate) * times * units * 3600) / 1e12;
          const [vcpus, gib] = [resources.cpu, resources.memory_mb / 1024];
          const perVcpu = (hourly - alone(price.gib_pico_usd_per_second, gib)) / vcpus;
          const perGib = (hourly - alone(price.vcpu_pico_usd_per_second, vcpus)) / gib;
          const nearly = (usd: number | undefined) => (usd ?? Number.POSITIVE_INFINITY) + 1e-7;
          expect(perVcpu).toBeLessThanOrEqual(nearly(max_price.vcpu_hour));
          expect(perGib).toBeLessThanOrEqual(nearly(max_price.gib_hour));
          expect(price.create_fee_micro_usd / 1e6).toBeLessThanOrEqual(nearly(max_price.create));
          compared += 1;
        }
      }),
      { numRuns: 1_000 },
    );
    expect(compared).toBeGreaterThan(100);
  });

  it('a wish never excludes', () => {
    fc.assert(
      fc.property(worlds, routes, (world, route) => {
        const {
          preferred_max_tti: _t,
          affinity_key: _k,
          value_of_time: _v,
          sort: _s,
          expect: _e,
          ...bare
        } = route;
        const names = (made: RoutePolicy) =>
          rankedCandidates(decide(inputOf(world, made)))
            .map(({ extension }) => extension)
            .sort();
        expect(names(route)).toEqual(names(bare));
      }),
    );
  });

  it('nothing outside the account policy is used', () => {
    fc.assert(
      fc.property(worlds, routes, fc.subarray(NAMES), (world, route, allowed) => {
        for (const { extension } of rankedCandidates(decide(inputOf(world, route, { allowed }))))
          expect(allowed).toContain(extension);
      }),
    );
  });

  it('a self-hosted backend comes before any other under prefer-self-hosted', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const hosting = rankedCandidates(decide(inputOf(world, { strategy: 'prefer-self-hosted' }))).map(
          ({ extension }) => world.extensions.find(({ id }) => id === extension)?.capabilities.hosting,
        );
        expect(hosting).toEqual([...hosting].sort().reverse());
      }),
    );
  });

  it('breakers are ignored only when no other candidate is left', () => {
    fc.assert(
      fc.property(worlds, routes, (world, route) => {
        const plan = decide(inputOf(world, route));
        const open = rankedCandidates(plan).filter(({ standing }) => standing?.breaker === 'open');
        if (open.length > 0) expect(rankedCandidates(plan).length).toBe(open.length);
        expect(plan.panic ?? false).toBe(open.length > 0);
      }),
    );
  });
});
