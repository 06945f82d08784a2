import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { learnFromMeters } from '../../src/control/money/learn-use.ts';
import { measureUse } from '../../src/control/money/measure-use.ts';
import type { Clock } from '../../src/core/ports/clock.ts';
import { UseBook } from '../../src/core/routing/learned-use.ts';
import { DEFAULT_PRICE } from '../../src/extensions/saas-stub/config.ts';
import { createSaasStubExtension } from '../../src/extensions/saas-stub/create.ts';
import { StubWorld } from '../../src/extensions/saas-stub/world/world.ts';
import { WorldTransport } from '../../src/extensions/saas-stub/world/world-transport.ts';
import type { Fixture } from './http/fixture.ts';
import { startFixture } from './http/fixture.ts';

const clock: Clock = { now: () => Date.now(), sleep: (ms, signal) => sleep(ms, undefined, { signal }) };

/** A metered backend of its own world, which can be made to fail. */
function backend(name: string, microUsdPerVcpuSecond: number, over: object = {}, createMs = 5) {
  const world = new StubWorld({ clock, createMs, deleteMs: 5, faults: [] });
  const price = {
    ...DEFAULT_PRICE,
    version: `${name}-1`,
    vcpu_pico_usd_per_second: String(microUsdPerVcpuSecond * 1_000_000),
    gib_pico_usd_per_second: '0',
    ...over,
  };
  const extension = createSaasStubExtension({
    id: `ext.saas-stub#${name}`,
    transport: new WorldTransport(world, clock),
    price,
    capabilities: { regions: [name === 'cheap' ? 'us' : 'eu-west-1'] },
  });
  return { world, extension };
}

const PROFILE = {
  id: 'profile.stub-routed',
  version: '1.0.0',
  isolation: { level: 'none' },
  network: { default: 'allow' },
  ttl: { default: '10m', max: '1h' },
  route: {
    strategy: 'lowest-cost',
    only: ['ext.saas-stub'],
    ignore: ['ext.saas-stub#worked', 'ext.saas-stub#slow'],
  },
};

let fixture: Fixture;
const cheap = backend('cheap', 1);
const dear = backend('dear', 20);
/** Slow enough that all of a burst are decided before it answers. */
const slow = backend('slow', 2, {}, 5_000);
/** Bills what its programs do, and tells it: all the time, at the end of each life. */
const worked = backend('worked', 60, { vcpu_basis: 'active' });
const { teardown } = worked.extension;
const USED = { cpuMs: 1e9, peakMemoryMb: 256 };
Object.assign(worked.extension, {
  measure: async () => USED,
  teardown: async (...args: Parameters<typeof teardown>) => ({
    ...(await teardown.apply(worked.extension, args)),
    used: USED,
  }),
});

beforeAll(async () => {
  fixture = await startFixture({
    extensions: [cheap.extension, dear.extension, slow.extension, worked.extension],
  });
  expect((await fixture.call('POST', '/v1/profiles', { json: PROFILE })).status).toBe(201);
});
afterAll(() => fixture.close());

const post = (path: string, json: unknown) => fixture.call('POST', path, { json });
const routed = (over: object = {}) => ({ profile: PROFILE.id, ...over });

describe('routing', () => {
  it('routing takes the cheapest backend and reports the cost of the others', async () => {
    const made = await post('/v1/sandboxes', routed());
    expect(made.json).toMatchObject({ extension: 'ext.saas-stub#cheap' });
    const { json } = await fixture.call('GET', `/v1/sandboxes/${made.json.sandbox_id}/route`);
    const [first, second] = json.plan.candidates;
    expect(first).toMatchObject({
      extension: 'ext.saas-stub#cheap',
      rank: 0,
      standing: { probe: 'healthy' },
    });
    expect(second).toMatchObject({ extension: 'ext.saas-stub#dear', rank: 1 });
    expect(second.quote.max_charge_micro_usd).toBe(20 * first.quote.max_charge_micro_usd);
    expect(second.score.outcome).toBeGreaterThan(first.score.outcome);
  });

  it('routing keeps to the backends that the workspace allows, whatever the request says', async () => {
    const policy = { constraints: { data_residency: 'eu' } };
    const set = await fixture.call('PUT', '/v1/workspaces/default/policy', { json: policy });
    expect(set.json).toMatchObject({ policy });
    const plan = await post('/v1/routes/resolve', routed());
    expect(
      plan.json.candidates.map(({ extension, rank }: { extension: string; rank: number }) => [
        extension,
        rank,
      ]),
    ).toContainEqual(['ext.saas-stub#dear', 0]);
    const refused = await post(
      '/v1/routes/resolve',
      routed({ route: { constraints: { data_residency: 'us' } } }),
    );
    expect(refused).toMatchObject({ status: 409, json: { code: 'SBX_NO_ROUTE' } });
    const only = { only: ['ext.saas-stub#dear'] };
    await fixture.call('PUT', '/v1/workspaces/default/policy', { json: only });
    const pinned = await post('/v1/sandboxes', routed({ route: { order: ['ext.saas-stub#cheap'] } }));
    expect(pinned.json).toMatchObject({ extension: 'ext.saas-stub#dear' });
    const cleared = await fixture.call('DELETE', '/v1/workspaces/default/policy');
    expect(cleared.json).toMatchObject({ policy: null });
  });

  it('routing leaves a failing backend alone after five failures and reports it', async () => {
    cheap.world.faults.add({ op: 'create', kind: 'error_before', params: {} });
    for (let n = 0; n < 5; n += 1) {
      const made = await post('/v1/sandboxes', routed());
      expect(made.json).toMatchObject({ extension: 'ext.saas-stub#dear' });
    }
    const { json } = await fixture.call('GET', '/v1/extensions/ext.saas-stub%23cheap');
    expect(json.standing).toMatchObject({ breaker: 'open', samples: expect.any(Number) });
    const plan = await post('/v1/routes/resolve', routed());
    const excluded = plan.json.candidates.find(
      ({ extension }: { extension: string }) => extension === 'ext.saas-stub#cheap',
    );
    expect(excluded.excluded_by).toMatchObject([{ code: 'breaker_open' }]);
    const metrics = await fixture.call('GET', '/metrics');
    expect(metrics.text).toContain('sandboxer_backend_breaker_open{extension="ext.saas-stub#cheap"} 1');
  });
});

describe('a backend that was left alone', () => {
  it('a backend that was left alone is tried again by one request, while the others go elsewhere', async () => {
    const only = ['ext.saas-stub#slow', 'ext.saas-stub#dear'];
    const again = { ...PROFILE, id: 'profile.stub-again', route: { strategy: 'lowest-cost', only } };
    await post('/v1/profiles', again);
    const { health } = fixture.control;
    const place = { extensionId: 'ext.saas-stub#slow', hostId: null };
    // Its pause is over by now.
    for (let n = 0; n < 5; n += 1) health.probed(place, false, Date.now() - 16_000);
    const made = await Promise.all(
      Array.from({ length: 6 }, (_, n) => post('/v1/sandboxes', { profile: again.id, id: `again-${n}` })),
    );
    const where = made.map(({ json }) => json.extension);
    expect(where.filter((extension) => extension === 'ext.saas-stub#slow')).toHaveLength(1);
    expect(where.filter((extension) => extension === 'ext.saas-stub#dear')).toHaveLength(5);
    expect(health.awaitsTrial(place, Date.now())).toBe(false);
    const next = await post('/v1/routes/resolve', { profile: again.id });
    expect(next.json.candidates[0]).toMatchObject({ extension: place.extensionId, rank: 0 });
  });
});

describe('learned use of a profile', () => {
  it('learned use is in the next estimate with its evidence, and is there again after a start', async () => {
    const learnt = { ...PROFILE, id: 'profile.stub-learnt' };
    await post('/v1/profiles', learnt);
    const before = await post('/v1/quotes', { profile: learnt.id });
    expect(before.json.plan.expected).toMatchObject({ seconds: 600, seconds_from: 'ttl', samples: 0 });
    for (let n = 0; n < 8; n += 1) {
      const { json } = await post('/v1/sandboxes', { profile: learnt.id });
      await fixture.call('DELETE', `/v1/sandboxes/${json.sandbox_id}`);
    }
    const after = await post('/v1/quotes', { profile: learnt.id });
    expect(after.json.plan.expected).toMatchObject({ seconds_from: 'learned', samples: 8 });
    expect(after.json.expected_charge_micro_usd).toBeLessThan(before.json.expected_charge_micro_usd);
    expect(after.json.max_charge_micro_usd).toBe(before.json.max_charge_micro_usd);
    const { expected } = after.json.plan;
    const restarted = { ...fixture.control, uses: new UseBook() };
    await learnFromMeters(restarted);
    const again = restarted.uses.learned('default', learnt.id);
    expect(again).toMatchObject({ seconds: expected.seconds, samples: 8, cpu: null });
  });

  it('learned processor use is in the next estimate: a backend that bills work is left when there is much of it', async () => {
    const only = ['ext.saas-stub#worked', 'ext.saas-stub#dear'];
    const busy = { ...PROFILE, id: 'profile.stub-busy', route: { strategy: 'lowest-cost', only } };
    await post('/v1/profiles', busy);
    const routeOf = async () => (await post('/v1/routes/resolve', { profile: busy.id })).json;
    const before = await routeOf();
    expect(before.expected).toMatchObject({ cpu_utilisation: 0.25, cpu_from: 'assumed', cpu_samples: 0 });
    expect(before.candidates[0].extension).toBe('ext.saas-stub#worked');
    const running = await post('/v1/sandboxes', { profile: busy.id });
    await measureUse(fixture.control, new AbortController().signal);
    const [meter] = await fixture.control.store.read('t', (tx) => tx.meters.forSandbox(running.json.uid));
    expect(meter).toMatchObject({ cpuMs: 1e9, peakMemoryMb: 256, closedAt: null });
    const sandboxes = [running.json.sandbox_id];
    for (let n = 0; n < 7; n += 1)
      sandboxes.push((await post('/v1/sandboxes', { profile: busy.id })).json.sandbox_id);
    for (const id of sandboxes) await fixture.call('DELETE', `/v1/sandboxes/${id}`);
    const after = await routeOf();
    expect(after.expected).toMatchObject({ cpu_utilisation: 1, cpu_from: 'learned', cpu_samples: 8 });
    expect(after.expected).toMatchObject({ memory_from: 'learned', memory_utilisation: 0.25 });
    expect(after.candidates[0].extension).toBe('ext.saas-stub#dear');
    const restarted = { ...fixture.control, uses: new UseBook() };
    await learnFromMeters(restarted);
    expect(restarted.uses.learned('default', busy.id)?.cpu).toEqual({ share: 1, samples: 8 });
  });
});

describe('a quote', () => {
  it('a quote shows every candidate’s cost and holds for that request alone', async () => {
    const quote = await post('/v1/quotes', routed({ ttl: '20m' }));
    expect(quote.status).toBe(201);
    expect(quote.json.max_charge_micro_usd).toBe(20 * 1200);
    const other = await post('/v1/sandboxes', routed({ ttl: '30m', quote_id: quote.json.quote_id }));
    expect(other).toMatchObject({ status: 400, json: { field: 'quote_id' } });
    const missing = await post('/v1/sandboxes', routed({ ttl: '20m', quote_id: 'qte_00000000000000000000' }));
    expect(missing).toMatchObject({ status: 400, json: { field: 'quote_id' } });
    const unpriced = {
      id: 'of-a-quote',
      labels: { team: 'a' },
      consumer: { run_id: 'r1' },
      scope: 'shared',
      inputs: { warm: false },
      setup_metadata: { instructions: 'Run make.' },
    };
    const quoted = routed({ ttl: '20m', quote_id: quote.json.quote_id, ...unpriced });
    const made = await post('/v1/sandboxes', quoted);
    expect(made.status).toBe(201);
    const { json } = await fixture.call('GET', `/v1/sandboxes/${made.json.sandbox_id}/route`);
    const used = json.plan.candidates.find(({ rank }: { rank: number | null }) => rank === 0);
    expect(used.quote.max_charge_micro_usd).toBeLessThanOrEqual(quote.json.max_charge_micro_usd);
  });
});
