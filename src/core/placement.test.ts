import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HostSpecInput } from '../contract/host.ts';
import { HostSpec } from '../contract/host.ts';
import type { ExtensionHeader } from './extension.ts';
import type { HostLoad, HostRecord } from './host.ts';
import { judgeHost, UNPROBED } from './host.ts';
import type { PlacementInput } from './placement.ts';
import { place } from './placement.ts';
import type { Recipe } from './recipe.ts';

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
  const base = { isolation: 'none', resources: {}, route: {}, placement: { prefer: [], fallback: [] } };
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
  it('never chooses a production host, not even when it is asked for by name', () => {
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

  it('takes the preferred, then the fallback, then any other', () => {
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

  it('honours health, extensions, isolation, the asked host and where the source lies', () => {
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

  it('spreads or packs, and never beyond what a host has', () => {
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

  it('does not pile a burst onto one host, when each sees what the others have reserved', () => {
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

  it('is the same for the same seed', () => {
    const hosts = Array.from({ length: 20 }, (_, n) => host(`h${n}`));
    const chosen = (seed: string) => place(header(), input(hosts, {}, { seed })).hostId;
    expect(chosen('x')).toBe(chosen('x'));
    const seen = new Set(Array.from({ length: 200 }, (_, n) => chosen(`seed-${n}`)));
    expect(seen.size).toBeGreaterThan(10);
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
  it('follows the first probe, and then changes only on several in a row', () => {
    expect(story('+--+---+-++').join('')).toBe('++++++---' + '-+');
    expect(story('-+-++').join('')).toBe('----+');
  });
});
