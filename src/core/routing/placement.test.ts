import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HostSpecInput } from '../../contract/extensions/host.ts';
import { HostSpec } from '../../contract/extensions/host.ts';
import type { HostLoad, HostRecord } from '../hosts/host.ts';
import { judgeHost, UNPROBED } from '../hosts/host.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import type { Recipe } from '../recipe/recipe.ts';
import type { PlacementInput } from './placement.ts';
import { place } from './placement.ts';

const ssh = { destination: 'h.example', host_keys: ['ssh-ed25519 AAAA'] };

function host(id: string, spec: Partial<HostSpecInput> = {}, row: Partial<HostRecord> = {}): HostRecord {
  return {
    id,
    version: 1,
    source: 'api',
    spec: HostSpec.parse({ id, ssh, ...spec }),
    state: 'active',
    health: UNPROBED,
    createdAt: 0,
    ...row,
  };
}

const header = (over: object = {}) =>
  ({ id: 'ext.ssh', runsOn: 'hosts', capabilities: { hosting: 'self-hosted' }, ...over }) as ExtensionHeader;

function input(hosts: readonly HostRecord[], recipe: object = {}, over: Partial<PlacementInput> = {}) {
  const placement = { prefer: [], fallback: [] };
  const base = { isolation: 'none', resources: {}, route: {}, requires: {}, placement };
  return {
    recipe: { ...base, ...recipe } as unknown as Recipe,
    hosts,
    loads: {},
    seed: 's',
    boundHost: null,
    ...over,
  };
}

const load = (sandboxes: number): HostLoad => ({ sandboxes, millicpu: 0, memoryMb: 0 });
const capacity = (sandboxes: number) => ({ capacity: { sandboxes, cpu: null, memory_mb: null } });

describe('placement', () => {
  it('a required region: only a host whose label names it is chosen, whatever is preferred', () => {
    const labels = fc.constantFrom(undefined, 'eu', 'us', 'eu-west-1');
    const wanted = fc.constantFrom({ region: 'eu' }, { data_residency: 'eu' }, { region: 'us' });
    fc.assert(
      fc.property(fc.array(labels, { minLength: 1, maxLength: 5 }), wanted, (regions, requires) => {
        const many = regions.map((region, n) =>
          host(`h${n}`, region === undefined ? {} : { labels: { region } }),
        );
        const suits = (region: string | undefined) =>
          requires.region === undefined
            ? region === 'eu' || region === 'eu-west-1'
            : region === requires.region;
        const placement = { prefer: ['h0'], fallback: [] };
        const { hostId, otherHosts, refused, passes } = place(header(), input(many, { requires, placement }));
        const fit = many.filter((_, n) => suits(regions[n])).map(({ id }) => id);
        expect(refused).toBe(fit.length === 0);
        expect(passes).toBe(false);
        for (const id of [hostId, ...otherHosts]) if (id !== null) expect(fit).toContain(id);
      }),
    );
    expect(place(header(), input([host('a')], { requires: { region: 'eu' } })).reason).toBe(
      'a has no label region, eu is needed (sandboxer hosts add --label region=eu)',
    );
  });

  it('placement never chooses a production host, not even when it is asked for by name', () => {
    const hosts = [host('prod', { class: 'production' })];
    for (const recipe of [{}, { route: { host: 'prod' } }, { placement: { prefer: ['prod'], fallback: [] } }])
      expect(place(header(), input(hosts, recipe))).toMatchObject({
        refused: true,
        hostId: null,
        reason: 'prod is a production host, which is never a target',
      });
    fc.assert(
      fc.property(fc.string(), fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }), (seed, classes) => {
        const many = classes.map((production, n) =>
          host(`h${n}`, { class: production ? 'production' : 'sandbox' }),
        );
        const { hostId, otherHosts } = place(header(), input(many, {}, { seed }));
        for (const id of [hostId, ...otherHosts])
          if (id !== null) expect(classes[Number(id.slice(1))]).toBe(false);
      }),
    );
  });

  it('placement takes the preferred, then the fallback, then any other', () => {
    const hosts = ['a', 'b', 'c'].map((id) => host(id));
    const placement = { prefer: ['c'], fallback: ['b'] };
    const decision = place(header(), input(hosts, { placement }));
    expect([decision.hostId, ...decision.otherHosts]).toEqual(['c', 'b', 'a']);
    const drained = hosts.map((one) => (one.id === 'c' ? { ...one, state: 'draining' as const } : one));
    expect(place(header(), input(drained, { placement }))).toMatchObject({
      hostId: 'b',
      reason: expect.stringContaining('c is draining'),
    });
  });

  it('placement honours health, extensions, isolation, the asked host and the place of the source', () => {
    const sick = host('a', {}, { health: { ...UNPROBED, status: 'unhealthy', detail: 'gone' } });
    expect(place(header(), input([sick])).reason).toBe('a is unhealthy: gone');
    const docker = host('a', { extensions: ['ext.docker'] });
    expect(place(header(), input([docker])).reason).toBe('a does not serve ext.ssh');
    expect(place(header({ id: 'ext.docker#x' }), input([docker])).hostId).toBe('a');
    const plain = host('a', { isolation: ['none'] });
    expect(place(header(), input([plain], { isolation: 'container' })).refused).toBe(true);
    const two = [host('a'), host('b')];
    expect(place(header(), input(two, { route: { host: 'b' } })).hostId).toBe('b');
    expect(place(header(), input(two, { route: { host: 'x' } })).reason).toBe('there is no host x');
    expect(place(header(), input(two, {}, { boundHost: 'a' })).hostId).toBe('a');
    expect(place(header({ runsOn: undefined }), input(two, { route: { host: 'b' } })).refused).toBe(true);
    expect(place(header({ runsOn: undefined }), input(two)).hostId).toBe('local');
  });

  it('placement spreads or packs, and never beyond what a host has', () => {
    const hosts = [host('a', capacity(4)), host('b', capacity(4))];
    const loads = { a: load(3), b: load(1) };
    const by = (strategy: string) =>
      place(header(), input(hosts, { placement: { prefer: [], fallback: [], strategy } }, { loads })).hostId;
    expect([by('spread'), by('pack')]).toEqual(['b', 'a']);
    const full = place(header(), input(hosts, {}, { loads: { a: load(4), b: load(9) } }));
    expect(full).toMatchObject({
      refused: true,
      reason: 'a has no room: sandboxes; b has no room: sandboxes',
    });
    const memory = host('m', { capacity: { sandboxes: null, cpu: 2, memory_mb: 1024 } });
    const wants = (resources: object) => place(header(), input([memory], { resources })).refused;
    expect([wants({ cpu: 2, memory_mb: 1024 }), wants({ cpu: 3 }), wants({ memory_mb: 1025 })]).toEqual([
      false,
      true,
      true,
    ]);
  });

  it('placement does not pile a burst onto one host, when each sees what the others have reserved', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 9 }), fc.integer({ min: 1, max: 12 }), (count, each) => {
        const hosts = Array.from({ length: count }, (_, n) => host(`h${n}`, capacity(each)));
        const loads: Record<string, HostLoad> = {};
        for (let n = 0; n < count * each; n += 1) {
          const { hostId } = place(header(), input(hosts, {}, { loads, seed: `s${n}` }));
          expect(hostId).not.toBeNull();
          const id = hostId as string;
          loads[id] = load((loads[id]?.sandboxes ?? 0) + 1);
        }
        expect(Object.values(loads).map(({ sandboxes }) => sandboxes)).toEqual(Array(count).fill(each));
        expect(place(header(), input(hosts, {}, { loads })).refused).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  it('placement is the same for the same seed', () => {
    const hosts = Array.from({ length: 20 }, (_, n) => host(`h${n}`));
    const chosen = (seed: string) => place(header(), input(hosts, {}, { seed })).hostId;
    expect(chosen('x')).toBe(chosen('x'));
    const seen = new Set(Array.from({ length: 200 }, (_, n) => chosen(`seed-${n}`)));
    expect(seen.size).toBeGreaterThan(10);
  });
});

describe('placement in every fleet', () => {
  const figures = fc.record({
    cpus: fc.constant(4),
    load1: fc.double({ min: 0, max: 12, noNaN: true }),
    memoryTotalMb: fc.constant(1000),
    memoryAvailableMb: fc.integer({ min: 0, max: 1000 }),
    diskTotalMb: fc.constant(10_000),
    diskFreeMb: fc.integer({ min: 0, max: 10_000 }),
  });
  const standing = (status: 'healthy' | 'unhealthy') => ({
    'ext.ssh': {
      status,
      detail: 'no',
      since: 0,
      checkedAt: 0,
      failures: 0,
      successes: 0,
      readyMs: null,
      execMs: null,
      goneMs: null,
    },
  });
  const one = fc.record({
    class: fc.constantFrom('sandbox' as const, 'sandbox' as const, 'production' as const),
    state: fc.constantFrom('active' as const, 'active' as const, 'draining' as const),
    status: fc.constantFrom('healthy' as const, 'unknown' as const, 'unhealthy' as const),
    canary: fc.constantFrom('healthy' as const, 'healthy' as const, 'unhealthy' as const),
    most: fc.integer({ min: 1, max: 6 }),
    running: fc.integer({ min: 0, max: 6 }),
    tier: fc.constantFrom('prefer' as const, 'fallback' as const, 'other' as const),
    cost: fc.integer({ min: 0, max: 5 }),
    figures,
  });
  type One = typeof one extends fc.Arbitrary<infer T> ? T : never;
  const usable = (at: One) =>
    at.class === 'sandbox' &&
    at.state === 'active' &&
    at.status !== 'unhealthy' &&
    at.canary === 'healthy' &&
    at.running < at.most &&
    at.figures.memoryAvailableMb >= 64 &&
    at.figures.diskFreeMb >= 256;

  function fleet(all: readonly One[], strategy?: string, route: object = {}) {
    const hosts = all.map((at, n) =>
      host(
        `h${n}`,
        { class: at.class, cost_micro_usd_per_hour: at.cost, ...capacity(at.most) },
        {
          state: at.state,
          health: {
            ...UNPROBED,
            status: at.status,
            figures: at.figures,
            canaries: standing(at.canary),
          },
        },
      ),
    );
    const named = (tier: One['tier']) => all.flatMap((at, n) => (at.tier === tier ? [`h${n}`] : []));
    const placement = { prefer: named('prefer'), fallback: named('fallback'), strategy };
    const loads = Object.fromEntries(all.map((at, n) => [`h${n}`, load(at.running)]));
    return (seed: string) => place(header(), input(hosts, { placement, route }, { loads, seed }));
  }
  const at = (all: readonly One[], id: string | null) => all[Number((id as string).slice(1))] as One;
  const many = fc.array(one, { minLength: 1, maxLength: 9 });

  it('a chosen host has room for the sandbox, and a request is refused only when no host has', () => {
    fc.assert(
      fc.property(many, fc.constantFrom('spread', 'pack'), fc.string(), (all, strategy, seed) => {
        const decision = fleet(all, strategy)(seed);
        expect(decision.refused).toBe(!all.some(usable));
        if (decision.refused) return;
        for (const id of [decision.hostId, ...decision.otherHosts]) expect(usable(at(all, id))).toBe(true);
        expect(decision.reason).toContain(decision.hostId);
      }),
    );
  });

  it('placement takes no fallback before a preferred host, and no other before a fallback', () => {
    const rank = { prefer: 0, fallback: 1, other: 2 };
    fc.assert(
      fc.property(many, fc.string(), (all, seed) => {
        const { hostId, otherHosts, refused } = fleet(all)(seed);
        if (refused) return;
        const ranks = [hostId, ...otherHosts].map((id) => rank[at(all, id).tier]);
        expect(ranks).toEqual([...ranks].sort());
        expect(ranks[0]).toBe(Math.min(...all.filter(usable).map(({ tier }) => rank[tier])));
      }),
    );
  });

  it('placement takes the less busy of otherwise equal hosts; and the cheapest, where the request asks for it', () => {
    const pair = fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 4 }));
    fc.assert(
      fc.property(one, pair, fc.string(), (base, [first, second], seed) => {
        fc.pre(usable(base) && first !== second);
        const free = { ...base.figures, memoryAvailableMb: 1000 };
        const all = [first, second].map((load1) => ({ ...base, figures: { ...free, load1 } }));
        const { hostId } = fleet(all)(seed);
        expect(at(all, hostId).figures.load1).toBe(Math.min(first, second));
      }),
    );
    fc.assert(
      fc.property(many, fc.string(), (all, seed) => {
        const flat = all.map((host) => ({ ...host, tier: 'other' as const }));
        const { hostId, refused } = fleet(flat, undefined, { strategy: 'lowest-cost' })(seed);
        if (refused) return;
        expect(at(flat, hostId).cost).toBe(Math.min(...flat.filter(usable).map(({ cost }) => cost)));
      }),
    );
  });
});

describe('the health of a host', () => {
  const story = (probes: string) => {
    let health = UNPROBED;
    return [...probes].map((probe, at) => {
      health = judgeHost(
        health,
        probe === '+' ? { ok: true, latencyMs: 1, detail: 'ok' } : { ok: false, detail: 'no' },
        at,
      );
      return health.status === 'healthy' ? '+' : '-';
    });
  };
  it('the health of a host follows the first probe, and then changes only after several equal results in a row', () => {
    expect(story('+--+---+-++').join('')).toBe('++++++---' + '-+');
    expect(story('-+-++').join('')).toBe('----+');
  });
});
