import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningStub } from '../../src/extensions/saas-stub/server/start-server.ts';
import { startStubServer } from '../../src/extensions/saas-stub/server/start-server.ts';
import { TestServer } from '../support/test-server.ts';

/** Time enough to extend what is not ready yet. The settings of money are those that every server has. */
const CREATE_MS = 600;

let stub: RunningStub;
let server: TestServer;
let key: string;
beforeAll(async () => {
  stub = await startStubServer({ keys: ['platform-key-0001'], createMs: CREATE_MS });
  server = await TestServer.start((config) => ({
    extensions: { ...config.extensions, saas_stub: { default: { url: stub.url } } },
  }));
  const json = { extension: 'ext.saas-stub', scope: 'platform', secret: 'platform-key-0001' };
  await server.expect(200, 'PUT', '/v1/provider-keys', { json });
  key = await server.workspace('extended');
  const granted = { amount_micro_usd: 1_000_000 };
  await server.expect(200, 'POST', '/v1/credits/grants', { key, json: granted });
});
afterAll(async () => {
  await server?.close();
  await stub?.stop();
});

const path = (id: string, verb = '') => `/v1/sandboxes/${id}${verb}`;
const act = (id: string, verb: string, json?: object) =>
  server.expect(200, 'POST', path(id, `/${verb}`), { key, ...(json && { json }) });

async function extendedBeforeReady(id: string): Promise<void> {
  const json = { profile: 'profile.stub-metered', id, ttl: 300 };
  await server.expect(202, 'POST', '/v1/sandboxes?wait=none', { key, json });
  await act(id, 'extend', { ttl: 900 });
  while ((await server.expect(200, 'GET', path(id), { key })).state !== 'ready') await sleep(20);
}

/** In milliseconds: between `ready` and its end without its pauses, by the events. */
async function ranByEvents(id: string): Promise<number> {
  let ran = 0;
  let since: number | null = null;
  for (const event of await server.events({ key })) {
    if (event.data.sandbox_id !== id || !event.type.includes('sandbox.')) continue;
    const runs = event.data.state === 'ready' || event.data.state === 'active';
    if (runs) since ??= Date.parse(event.time);
    else if (since !== null) {
      ran += Date.parse(event.time) - since;
      since = null;
    }
  }
  return ran;
}

async function expectBilled(id: string, ranMs: number): Promise<void> {
  const billed = (await server.events({ key })).find(
    ({ type, data }) => type.endsWith('sandbox.billed') && data.sandbox_id === id,
  );
  const { billed_seconds: seconds, charged_micro_usd: charged, meter_id } = billed?.data.details ?? {};
  // The two clocks round each moment by themselves.
  expect(Math.abs(seconds * 1_000 - ranMs)).toBeLessThanOrEqual(20);
  expect(charged).toBeGreaterThan(0);
  const { items } = await server.expect(200, 'GET', '/v1/credits/transfers?limit=1000', { key });
  const cost = items.find(({ transfer_id }: { transfer_id: string }) => transfer_id === `${meter_id}:cost`);
  expect(cost?.amount_micro_usd).toBe(charged);
}

describe('a sandbox that is extended before it is ready, over HTTP', () => {
  it('a sandbox extended before it is ready is billed from ready on, and its backend’s cost is booked', async () => {
    await extendedBeforeReady('soon');
    await sleep(1_500);
    await server.expect(200, 'DELETE', path('soon'), { key });
    const ran = await ranByEvents('soon');
    expect(ran).toBeGreaterThan(1_400);
    await expectBilled('soon', ran);
  });

  it('a sandbox that is extended before it is ready, over HTTP is not billed for its pauses', async () => {
    await extendedBeforeReady('rests');
    await sleep(400);
    await act('rests', 'pause');
    await sleep(1_500);
    await act('rests', 'resume');
    await act('rests', 'extend', { ttl: 1_200 });
    await sleep(400);
    await server.expect(200, 'DELETE', path('rests'), { key });
    const ran = await ranByEvents('rests');
    expect(ran).toBeLessThan(1_500 + CREATE_MS);
    await expectBilled('rests', ran);
  });

  it('a sandbox that is extended before it is ready, over HTTP agrees with the audit', async () => {
    expect((await server.expect(200, 'GET', '/v1/credits/audit')).findings).toEqual([]);
  });
});
