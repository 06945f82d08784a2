import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Price } from '../../src/contract/money/money.ts';
import type { Clock } from '../../src/core/ports/clock.ts';
import { DEFAULT_PRICE } from '../../src/extensions/saas-stub/config.ts';
import { createSaasStubExtension } from '../../src/extensions/saas-stub/create.ts';
import { StubWorld } from '../../src/extensions/saas-stub/world/world.ts';
import { WorldTransport } from '../../src/extensions/saas-stub/world/world-transport.ts';
import { createMemoryExtension } from '../../src/testing/memory/memory-extension.ts';
import type { Fixture } from './http/fixture.ts';
import { startFixture } from './http/fixture.ts';

const NOW = Date.now();
const clock: Clock = { now: () => NOW, sleep: async () => {} };
const plain: Price = { ...DEFAULT_PRICE, version: 'plain' };
/** Sold by the minute, a minute and a half at least, with a fee. */
const coarse: Price = {
  ...DEFAULT_PRICE,
  version: 'coarse',
  create_fee_micro_usd: 700,
  minimum_seconds: 90,
  quantum_ms: 60_000,
};

/** Whose whole life is held at the create, and one that is paid for in stretches. */
const BACKENDS = {
  'ext.memory#plain': createMemoryExtension({ id: 'ext.memory#plain', price: plain }),
  'ext.memory#coarse': createMemoryExtension({ id: 'ext.memory#coarse', price: coarse }),
  'ext.saas-stub': createSaasStubExtension({
    transport: new WorldTransport(new StubWorld({ clock, createMs: 0, deleteMs: 0, faults: [] }), clock),
    price: coarse,
  }),
};
const names = Object.keys(BACKENDS);
const MOST_SECONDS = 7_200;

let f: Fixture;
beforeAll(async () => {
  // Time stands still: what a second costs more is compared to the micro-dollar.
  vi.useFakeTimers({ toFake: ['Date'], now: NOW });
  f = await startFixture({ extensions: Object.values(BACKENDS) });
});
afterAll(async () => {
  await f.close();
  vi.useRealTimers();
});

const wallet = fc.record({
  backend: fc.constantFrom(...names),
  credits: fc.integer({ min: 1, max: 150_000 }),
  budgets: fc.array(
    fc.record({
      scope: fc.constantFrom('workspace', 'profile', 'run'),
      period: fc.constantFrom('day', 'lifetime'),
      limit_micro_usd: fc.integer({ min: 1, max: 150_000 }),
    }),
    { maxLength: 2 },
  ),
  ttl: fc.integer({ min: 1, max: MOST_SECONDS }),
});
type Wallet = typeof wallet extends fc.Arbitrary<infer T> ? T : never;

let made = 0;
async function workspaceWith({ backend, credits, budgets }: Wallet) {
  made += 1;
  const workspace = `w${made}`;
  const post = (path: string, json: object) =>
    f.call('POST', path, { json, headers: { 'sandboxer-workspace': workspace } });
  await f.call('POST', '/v1/workspaces', { json: { workspace_id: workspace, org_id: 'default' } });
  const profile = {
    id: 'profile.stub-afford',
    version: '1.0.0',
    extension: backend,
    isolation: { level: 'none' },
    network: { default: 'allow' },
    ttl: { default: '1h', max: '2h' },
  };
  expect((await post('/v1/profiles', profile)).status).toBe(201);
  expect((await post('/v1/credits/grants', { amount_micro_usd: credits, kind: 'grant' })).status).toBe(200);
  for (const budget of budgets) expect((await post('/v1/budgets', budget)).status).toBe(201);
  const create = (ttl: number) =>
    post('/v1/sandboxes', { profile: profile.id, ttl, consumer: { run_id: 'r' } });
  return { post, create };
}

describe('affordable_seconds of a 402', () => {
  it('create: that ttl is admitted, and one second more is not, whatever purse, budgets and price', async () => {
    let refusals = 0;
    await fc.assert(
      fc.asyncProperty(wallet, async (given) => {
        const { create } = await workspaceWith(given);
        const first = await create(given.ttl);
        if (first.status !== 402) return;
        refusals += 1;
        const seconds = first.json.affordable_seconds as number;
        expect(seconds).toBeLessThan(given.ttl);
        expect(await create(seconds + 1)).toMatchObject({
          status: 402,
          json: { affordable_seconds: seconds },
        });
        if (seconds > 0) expect((await create(seconds)).status).toBe(201);
      }),
      { numRuns: 60 },
    );
    expect(refusals).toBeGreaterThan(15);
  });

  it('extend: that ttl is admitted, and one second more is not', async () => {
    let refusals = 0;
    await fc.assert(
      fc.asyncProperty(wallet, fc.integer({ min: 1, max: 600 }), async (given, ttl) => {
        const { post, create } = await workspaceWith({ ...given, backend: names[made % 2] as string });
        const { status, json } = await create(ttl);
        if (status !== 201) return;
        const extend = (seconds: number) => post(`/v1/sandboxes/${json.sandbox_id}/extend`, { ttl: seconds });
        const first = await extend(MOST_SECONDS);
        if (first.status !== 402) return;
        refusals += 1;
        const seconds = first.json.affordable_seconds as number;
        expect((await extend(seconds + 1)).status).toBe(402);
        if (seconds > 0) expect((await extend(seconds)).status).toBe(200);
      }),
      { numRuns: 60 },
    );
    expect(refusals).toBeGreaterThan(10);
  });
});
