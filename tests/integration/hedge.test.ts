import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/core/ports/clock.ts';
import { DEFAULT_PRICE } from '../../src/extensions/saas-stub/config.ts';
import { createSaasStubExtension } from '../../src/extensions/saas-stub/create.ts';
import { StubWorld } from '../../src/extensions/saas-stub/world/world.ts';
import { WorldTransport } from '../../src/extensions/saas-stub/world/world-transport.ts';
import type { Fixture } from './http/fixture.ts';
import { startFixture } from './http/fixture.ts';

const clock: Clock = { now: () => Date.now(), sleep: (ms, signal) => sleep(ms, undefined, { signal }) };

function backend(name: string) {
  const world = new StubWorld({ clock, createMs: 0, deleteMs: 0, faults: [] });
  const price = { ...DEFAULT_PRICE, version: `${name}-1`, create_fee_micro_usd: 7 };
  const transport = new WorldTransport(world, clock);
  return { world, extension: createSaasStubExtension({ id: `ext.saas-stub#${name}`, transport, price }) };
}

const PROFILE = {
  id: 'profile.stub-hedged',
  version: '1.0.0',
  isolation: { level: 'none' },
  network: { default: 'allow' },
  ttl: { default: '10m', max: '1h' },
  route: { order: ['ext.saas-stub#first', 'ext.saas-stub#second'], only: ['ext.saas-stub'], hedge: 'auto' },
};
const SOON = { route: { hedge_after: 0.05, value_of_time: 1_000_000 } };

let fixture: Fixture;
const first = backend('first');
const second = backend('second');

beforeAll(async () => {
  const config = { routing: { hedge_share: 0.5 } };
  fixture = await startFixture({ extensions: [first.extension, second.extension], config });
  expect((await fixture.call('POST', '/v1/profiles', { json: PROFILE })).status).toBe(201);
});
afterAll(() => fixture.close());

const create = (over: object = {}) =>
  fixture.call('POST', '/v1/sandboxes', { json: { profile: PROFILE.id, ...over } });
const routeOf = async (id: string) => (await fixture.call('GET', `/v1/sandboxes/${id}/route`)).json;

async function until<T>(look: () => Promise<T | null | false>): Promise<T> {
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    await sleep(20);
  }
}

/** Everything that was booked for a sandbox, by kind. */
async function bookedFor(uid: string): Promise<Map<string, number>> {
  const transfers = await fixture.store.read('transfers', (tx) =>
    tx.ledger.transfers({ workspaceId: null, after: 0, limit: 10_000 }),
  );
  const sums = new Map<string, number>();
  for (const { kind, amountMicroUsd, sandboxUid } of transfers)
    if (sandboxUid === uid) sums.set(kind, (sums.get(kind) ?? 0) + amountMicroUsd);
  return sums;
}

describe('a slow first attempt', () => {
  it('a slow first attempt is outrun by a second one, removed, and charged to insurance', async () => {
    // Two attempts earn one hedge.
    for (let n = 0; n < 2; n += 1) expect((await create()).status).toBe(201);
    first.world.faults.add({ op: 'create', kind: 'slow', times: 1, params: { ms: 60_000 } });
    const made = await create(SOON);
    expect(made.json).toMatchObject({ state: 'ready', extension: 'ext.saas-stub#second' });
    const { sandbox_id: id, uid } = made.json;
    const { plan, attempts } = await until(async () => {
      const route = await routeOf(id);
      return route.attempts[0].state === 'gone' && route;
    });
    expect(plan.hedge).toMatchObject({ extension: 'ext.saas-stub#second', after_ms: 50 });
    expect(attempts).toMatchObject([
      { n: 1, extension: 'ext.saas-stub#first', outrun_by: 2, hedges: null },
      { n: 2, extension: 'ext.saas-stub#second', state: 'won', hedges: 1, outrun_by: null },
    ]);
    const names = [first, second].flatMap(({ world }) => world.objects().map(({ name }) => name));
    expect(names.filter((name) => name.startsWith(uid))).toHaveLength(1);

    await fixture.call('DELETE', `/v1/sandboxes/${id}`);
    const booked = await bookedFor(uid);
    // One create fee in what the customer paid; the other one is ours, and told apart.
    expect(booked.get('capture')).toBe(booked.get('cost'));
    expect(booked.get('hedge')).toBeGreaterThanOrEqual(7);
    const events = await fixture.call('GET', `/v1/sandboxes/${id}/events`);
    const types = events.json.items.map(({ type }: { type: string }) => type);
    expect(types.filter((type: string) => type.includes('hedged'))).toHaveLength(1);
    expect(types.filter((type: string) => type.endsWith('sandbox.ready'))).toHaveLength(1);
  });

  it('a slow first attempt wins all the same when it is ready first', async () => {
    for (let n = 0; n < 2; n += 1) await create();
    first.world.faults.add({ op: 'create', kind: 'slow', times: 1, params: { ms: 400 } });
    second.world.faults.add({ op: 'create', kind: 'slow', times: 1, params: { ms: 60_000 } });
    const made = await create(SOON);
    expect(made.json).toMatchObject({ state: 'ready', extension: 'ext.saas-stub#first' });
    const { attempts } = await until(async () => {
      const route = await routeOf(made.json.sandbox_id);
      return route.attempts[1]?.state === 'gone' && route;
    });
    expect(attempts).toMatchObject([{ state: 'won' }, { outrun_by: 1, hedges: 1 }]);
    expect(second.world.objects().filter(({ name }) => name.startsWith(made.json.uid))).toEqual([]);
  });

  it('a slow first attempt does not keep the sandbox waiting while it is being removed', async () => {
    for (let n = 0; n < 2; n += 1) await create();
    first.world.faults.add({ op: 'create', kind: 'slow', times: 1, params: { ms: 60_000 } });
    first.world.faults.add({ op: 'delete', kind: 'slow', times: 1, params: { ms: 6_000 } });
    const made = await create(SOON);
    const { sandbox_id: id } = made.json;
    const paused = await fixture.call('POST', `/v1/sandboxes/${id}/pause`);
    expect(paused.json).toMatchObject({ state: 'paused' });
    const { attempts } = await routeOf(id);
    expect(attempts[0]).toMatchObject({ outrun_by: 2, state: 'condemned' });
    await fixture.call('DELETE', `/v1/sandboxes/${id}`);
  });

  it('a slow first attempt is left alone without a request for hedging, without learned times, and against policy', async () => {
    const off = await fixture.call('POST', '/v1/routes/resolve', {
      json: { profile: PROFILE.id, route: { hedge: 'off' } },
    });
    expect(off.json.hedge).toBeUndefined();
    const unmeasured = await fixture.call('POST', '/v1/routes/resolve', { json: { profile: PROFILE.id } });
    expect(unmeasured.json.hedge).toMatchObject({
      after_ms: null,
      reason: expect.stringMatching(/measured/),
    });
    await fixture.call('PUT', '/v1/workspaces/default/policy', { json: { hedge: 'off' } });
    const forbidden = await fixture.call('POST', '/v1/routes/resolve', {
      json: { profile: PROFILE.id, ...SOON },
    });
    expect(forbidden.json.hedge).toBeUndefined();
    await fixture.call('DELETE', '/v1/workspaces/default/policy');
  });
});
