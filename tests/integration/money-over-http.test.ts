import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningStub } from '../../src/extensions/saas-stub/server/start-server.ts';
import { startStubServer } from '../../src/extensions/saas-stub/server/start-server.ts';
import { TestServer, until } from '../support/test-server.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

const PROFILE = {
  id: 'profile.stub-money',
  version: '1.0.0',
  extension: 'ext.saas-stub',
  isolation: { level: 'none' },
  network: { default: 'allow' },
  ttl: { default: '1h', max: '2h' },
};
const KEPT = { ...PROFILE, id: 'profile.stub-kept', persistence: 'checkpoint' };
/** Short, so that a lease ends within the test: what is paid for ahead, and the grace of the backend. */
const FUND_MS = 2_000;
const GRACE_MS = 8_000;

let stub: RunningStub;
let hub: WebhookReceiver;
let server: TestServer;
beforeAll(async () => {
  stub = await startStubServer({ keys: ['platform-key-0001'] });
  hub = await new WebhookReceiver().listen();
  const { url } = hub;
  server = await TestServer.start((config) => ({
    extensions: { ...config.extensions, saas_stub: { default: { url: stub.url } } },
    fin_hub: { url, token_file: null, timeout: 2_000 },
    timing: {
      ...config.timing,
      fund_ahead: FUND_MS,
      dead_man_grace: GRACE_MS,
      meter_tick: 200,
      first_retry: 20,
      longest_retry: 200,
    },
  }));
  const json = { extension: 'ext.saas-stub', scope: 'platform', secret: 'platform-key-0001' };
  await server.expect(200, 'PUT', '/v1/provider-keys', { json });
});
afterAll(async () => {
  await server?.close();
  await hub?.close();
  await stub?.stop();
});

async function workspace(id: string): Promise<string> {
  const key = await server.workspace(id);
  for (const json of [PROFILE, KEPT]) await server.expect(201, 'POST', '/v1/profiles', { key, json });
  return key;
}
const grant = (key: string, amount: number, over: object = {}) =>
  server.expect(200, 'POST', '/v1/credits/grants', { key, json: { amount_micro_usd: amount, ...over } });
const balance = (key: string) => server.expect(200, 'GET', '/v1/credits', { key });
const create = (key: string, json: object = {}) =>
  server.call('POST', '/v1/sandboxes', { key, json: { profile: PROFILE.id, ...json } });
const told = async (key: string, type: string) =>
  (await server.events({ key })).filter((event) => event.type.endsWith(type));

/** What one create reserves. */
async function price(key: string): Promise<number> {
  return (await create(key)).json.shortfall_micro_usd;
}

describe('money, over HTTP', () => {
  it('money for seven admits exactly seven of a hundred at once', async () => {
    const key = await workspace('seven');
    await grant(key, 7 * (await price(key)));
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => create(key, { id: `box-${n}` })));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status < 300)).toHaveLength(7);
    expect(statuses.filter((status) => status === 402)).toHaveLength(93);
    await Promise.all(
      answers
        .filter(({ status }) => status < 300)
        .map(({ json }) => server.call('DELETE', `/v1/sandboxes/${json.sandbox_id}`, { key })),
    );
  });

  it('a sandbox is paid for stretch by stretch, then warned of, kept and ended', async () => {
    const key = await workspace('lease');
    const one = await price(key);
    // The first stretch and a little more: it is renewed at least once, and not for ever.
    await grant(key, one + Math.ceil(one / 4));
    expect((await create(key, { id: 'kept', profile: KEPT.id })).status).toBe(201);
    await until(
      'it is over',
      async () => {
        const { json } = await server.call('GET', '/v1/sandboxes/kept', { key });
        return json.state === 'destroyed';
      },
      120_000,
    );
    const low = await told(key, 'sandbox.funds_low');
    expect(low).toHaveLength(1);
    const [expired] = await told(key, 'sandbox.expired');
    expect(expired.data.details).toMatchObject({ reason: 'credits', checkpoint: expect.any(String) });
    const transfers = (await server.expect(200, 'GET', '/v1/credits/transfers', { key })).items;
    const holds = transfers.filter(({ kind }: { kind: string }) => kind === 'hold');
    expect(holds.length).toBeGreaterThan(1);
    const after = await balance(key);
    expect(after.held_micro_usd).toBe(0);
    expect(after.available_micro_usd).toBeGreaterThanOrEqual(0);
    const [billed] = await told(key, 'sandbox.billed');
    expect(billed.data.details).toMatchObject({ charged_micro_usd: after.spent_micro_usd, payer: 'credits' });
    expect(billed.data.details.estimate_micro_usd).toBeGreaterThan(after.spent_micro_usd);
  });

  it('credits end with their grant', async () => {
    const key = await workspace('ending');
    await grant(key, 5_000, { expires_in: 1, reference: 'short' });
    await grant(key, 300, { reference: 'long' });
    await until('it is taken back', async () => (await balance(key)).available_micro_usd === 300);
    expect(await told(key, 'credits.expired')).toHaveLength(1);
  });

  it('fin-hub gets grants and bills through the outbox, adding up to the ledger', async () => {
    const ids = () => hub.taken.map(({ event }) => event);
    const events = (await server.events()).filter(({ type }) => /sandbox\.billed$|credits\./.test(type));
    await until('everything arrived', () => events.every(({ id }) => ids().some((event) => event.id === id)));
    const sums = new Map<string, number>();
    for (const event of new Map(ids().map((one) => [one.id, one])).values()) {
      if (!event.type.endsWith('sandbox.billed')) continue;
      const { workspace_id: id, details } = event.data;
      sums.set(id, (sums.get(id) ?? 0) + details.charged_micro_usd);
    }
    for (const id of ['seven', 'lease']) {
      const headers = { 'sandboxer-workspace': id };
      const { spent_micro_usd: spent } = await server.expect(200, 'GET', '/v1/credits', { headers });
      expect(sums.get(id)).toBe(spent);
      const page = await server.expect(200, 'GET', '/v1/credits/export?limit=10000', { headers });
      expect(page.total_micro_usd).toBe(spent);
    }
  });

  it('the ledger is consistent at the end', async () => {
    expect((await server.expect(200, 'GET', '/v1/credits/audit')).findings).toEqual([]);
  });
});
