import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningStub } from '../../src/extensions/saas-stub/server/start-server.ts';
import { startStubServer } from '../../src/extensions/saas-stub/server/start-server.ts';
import { TestServer, until } from '../support/test-server.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';
import type { Answer } from './http/fixture.ts';

const [PLATFORM, OWN] = ['platform-key-0001', 'own-key-0002'] as const;
const PROFILE = {
  id: 'profile.stub-accounts',
  version: '1.0.0',
  extension: 'ext.saas-stub',
  isolation: { level: 'none' },
  network: { default: 'allow' },
  ttl: { default: '10m', max: '2h' },
};
const OTHER = { ...PROFILE, id: 'profile.stub-other' };
const SCOPES = ['read', 'sandboxes', 'profiles', 'credits', 'billing', 'keys'] as const;
const PLENTY = 1_000_000_000;

let stub: RunningStub;
let hook: WebhookReceiver;
let server: TestServer;
/** What one create reserves. */
let needed: number;
/** A name of its own asks for a sandbox of its own. */
let made = 0;

beforeAll(async () => {
  stub = await startStubServer({ keys: [PLATFORM, OWN] });
  hook = await new WebhookReceiver().listen();
  server = await TestServer.start((config) => ({
    extensions: { ...config.extensions, saas_stub: { default: { url: stub.url } } },
    webhooks: { ...config.webhooks, allow_private: true },
    timing: { ...config.timing, first_retry: 20, longest_retry: 200 },
  }));
  await setKey(undefined, 'platform', PLATFORM);
  needed = (await create(await workspace('poor'))).json.shortfall_micro_usd;
});
afterAll(async () => {
  await server?.close();
  await hook?.close();
  await stub?.stop();
});

async function workspace(id: string, amount = 0, orgId = 'default'): Promise<string> {
  await server.expect(201, 'POST', '/v1/workspaces', { json: { workspace_id: id, org_id: orgId } });
  const key = await server.key(id, 'adm', SCOPES);
  for (const json of [PROFILE, OTHER]) await server.expect(201, 'POST', '/v1/profiles', { key, json });
  if (amount > 0) await grant(key, amount);
  return key;
}
const setKey = (key: string | undefined, scope: string, secret: string) =>
  server.expect(200, 'PUT', '/v1/provider-keys', {
    ...(key !== undefined && { key }),
    json: { extension: 'ext.saas-stub', scope, secret },
  });
const grant = (key: string, amount_micro_usd: number, over: object = {}) =>
  server.expect(200, 'POST', '/v1/credits/grants', { key, json: { amount_micro_usd, ...over } });
const balance = (key: string) => server.expect(200, 'GET', '/v1/credits', { key });
/** Answered as soon as it is admitted: money is decided then. */
const create = (key: string, json: object = {}): Promise<Answer> =>
  server.call('POST', '/v1/sandboxes?wait=none', {
    key,
    json: { profile: PROFILE.id, id: `box-${++made}`, ...json },
  });
const destroy = async (key: string, { json }: Answer) =>
  await server.call('DELETE', `/v1/sandboxes/${json.sandbox_id}`, { key });
const budget = (key: string, json: object) => server.expect(201, 'POST', '/v1/budgets', { key, json });
const dropBudget = (key: string, id: string) => server.expect(204, 'DELETE', `/v1/budgets/${id}`, { key });
const isIn = ({ status }: Answer) => status < 300;
const alertsOf = async (key: string) =>
  (await server.events({ key }))
    .filter(({ type }) => type.endsWith('budget.alert'))
    .map(({ data }) => data.details.percent);

describe('credits of an org', () => {
  it('credits of an org are one purse for two workspaces, and each sees its own spending', async () => {
    await server.expect(201, 'POST', '/v1/orgs', { json: { org_id: 'acme', name: 'Acme' } });
    const east = await workspace('east', needed, 'acme');
    const west = await workspace('west', needed, 'acme');
    await server.expect(200, 'PUT', '/v1/orgs/acme/credits', { json: { mode: 'shared' } });
    expect((await balance(west)).available_micro_usd).toBe(2 * needed);
    const boxes = [await create(east), await create(east)];
    expect(boxes.every(isIn)).toBe(true);
    const refused = await create(west);
    expect(refused).toMatchObject({
      status: 402,
      json: { scope: 'org', available_micro_usd: 0, shortfall_micro_usd: needed, retryable: false },
    });
    for (const one of boxes) await destroy(east, one);
    await until('all is settled', async () => (await balance(east)).held_micro_usd === 0);
    const [ofEast, ofWest] = [await balance(east), await balance(west)];
    expect(ofWest).toMatchObject({ spent_micro_usd: 0, available_micro_usd: ofEast.available_micro_usd });
    expect(ofEast.available_micro_usd).toBe(2 * needed - ofEast.spent_micro_usd);
    await server.expect(200, 'PUT', '/v1/orgs/acme/credits', { json: { mode: 'split' } });
    expect((await balance(east)).available_micro_usd + (await balance(west)).available_micro_usd).toBe(
      ofEast.available_micro_usd,
    );
  });

  it('credits of an org that end are spent before those that were bought', async () => {
    const key = await workspace('ending');
    await grant(key, needed, { kind: 'top_up', reference: 'bought' });
    await grant(key, needed, { expires_in: 3600, reference: 'gift' });
    const box = await server.call('POST', '/v1/sandboxes', { key, json: { profile: PROFILE.id } });
    await sleep(300);
    await destroy(key, box);
    await until('it is settled', async () => (await balance(key)).held_micro_usd === 0);
    const { spent_micro_usd: spent, expiring_micro_usd: expiring } = await balance(key);
    expect(spent).toBeGreaterThan(0);
    expect(expiring).toBe(needed - spent);
  });
});

describe('a refusal for want of money', () => {
  it('a refusal for want of money holds all data for a decision, and is not worth repeating', async () => {
    const key = await workspace('refused', needed - 1);
    const { status, json } = await create(key);
    expect(status).toBe(402);
    expect(json).toMatchObject({
      code: 'SBX_INSUFFICIENT_CREDITS',
      retryable: false,
      scope: 'workspace',
      available_micro_usd: needed - 1,
      shortfall_micro_usd: 1,
      affordable_seconds: expect.any(Number),
      resets_at: null,
      cheapest_alternative: { extension: 'ext.saas-stub', needed_micro_usd: needed },
      remedy: expect.any(String),
    });
    expect(json.affordable_seconds).toBeGreaterThan(0);
  });
});

describe.each([
  ['workspace', null],
  ['key', { otherKey: true }],
  ['profile', { profile: OTHER.id }],
  ['actor', { otherKey: true }],
  ['run', { consumer: { run_id: 'r2' } }],
] as const)('a budget of one %s', (scope, another) => {
  it('a budget stops at its limit in a day, a week, a month and for ever, and stops no other', async () => {
    const key = await workspace(`scope-${scope}`, PLENTY);
    const agent = await server.key(`scope-${scope}`, 'agt', SCOPES);
    const json = { consumer: { run_id: 'r1' } };
    const budgets: { budget_id: string; period: string }[] = [];
    for (const period of ['day', 'week', 'month', 'lifetime'])
      budgets.push(await budget(key, { scope, period, limit_micro_usd: 2 * needed - 1 }));
    expect(isIn(await create(key, json))).toBe(true);
    for (const { budget_id, period } of budgets) {
      const refused = await create(key, json);
      expect(refused).toMatchObject({
        status: 402,
        json: {
          code: 'SBX_BUDGET_EXCEEDED',
          scope,
          budget_id,
          retryable: false,
          shortfall_micro_usd: 1,
          available_micro_usd: needed - 1,
          cheapest_alternative: { needed_micro_usd: needed },
        },
      });
      const { resets_at: resets } = refused.json;
      if (period === 'lifetime') expect(resets).toBeNull();
      else {
        expect(resets).toMatch(/T00:00:00.000Z$/);
        const day = new Date(resets);
        if (period === 'week') expect(day.getUTCDay()).toBe(1);
        if (period === 'month') expect(day.getUTCDate()).toBe(1);
      }
      if (another && period === 'day') {
        const { otherKey, ...over } = { otherKey: false, ...another };
        expect(isIn(await create(otherKey ? agent : key, { ...json, ...over }))).toBe(true);
      }
      await dropBudget(key, budget_id);
    }
    expect(isIn(await create(key, json))).toBe(true);
  });
});

describe('a budget', () => {
  it('a budget holds under a burst: exactly as many as it allows', async () => {
    const key = await workspace('burst', PLENTY);
    await budget(key, { scope: 'workspace', period: 'day', limit_micro_usd: 3 * needed });
    const answers = await Promise.all(Array.from({ length: 20 }, () => create(key)));
    expect(answers.filter(isIn)).toHaveLength(3);
    expect(answers.filter(({ status }) => status === 402)).toHaveLength(17);
    expect(await alertsOf(key)).toContain(100);
  });

  it('a budget notifies a webhook at 80 and 100 %, again only after it fell well below', async () => {
    const key = await workspace('alerts', PLENTY);
    const webhook = await server.expect(201, 'POST', '/v1/webhooks', {
      headers: { 'sandboxer-workspace': 'alerts' },
      json: { url: hook.url, types: ['budget.alert'] },
    });
    hook.secrets.push(webhook.secret);
    await budget(key, { scope: 'workspace', period: 'month', limit_micro_usd: 5 * needed });
    const boxes: Answer[] = [];
    for (let n = 0; n < 5; n += 1) boxes.push(await create(key));
    expect(boxes.every(isIn)).toBe(true);
    expect(await alertsOf(key)).toEqual([80, 100]);
    for (const one of boxes.slice(0, 3)) await destroy(key, one);
    await until('it fell', async () => (await balance(key)).held_micro_usd === 2 * needed);
    for (let n = 0; n < 2; n += 1) expect(isIn(await create(key))).toBe(true);
    expect(await alertsOf(key)).toEqual([80, 100, 80]);
    await until('the webhook has them', () => hook.taken.length === 3);
    expect(hook.forged).toEqual([]);
    expect(hook.taken.map(({ event }) => event.data.details.percent)).toEqual([80, 100, 80]);
  });

  it('a budget lets new sandboxes in one by one from 80 % on, where it throttles', async () => {
    const key = await workspace('throttle', PLENTY);
    const limits = { limit_micro_usd: 5 * needed, throttle_seconds: 3600 };
    await budget(key, { scope: 'workspace', period: 'day', ...limits });
    for (let n = 0; n < 4; n += 1) expect(isIn(await create(key))).toBe(true);
    const held = await create(key);
    expect(held).toMatchObject({ status: 429, json: { code: 'SBX_RATE_LIMITED', retryable: true } });
    expect(Number(held.headers['retry-after'])).toBeGreaterThan(3_000);
  });
});

describe('limits', () => {
  const limit = (key: string, json: object) => server.expect(200, 'PUT', '/v1/credits/limits', { key, json });

  it('limits let exactly so many live at once, however many ask', async () => {
    const key = await workspace('living', PLENTY);
    await limit(key, { max_living: 2, creates_per_minute: null });
    const answers = await Promise.all(Array.from({ length: 12 }, () => create(key)));
    expect(answers.filter(isIn)).toHaveLength(2);
    expect(answers.filter(({ json }) => json.code === 'SBX_QUOTA_EXCEEDED')).toHaveLength(10);
  });

  it('limits let exactly so many in within a minute', async () => {
    const key = await workspace('rate', PLENTY);
    await limit(key, { max_living: null, creates_per_minute: 3 });
    const answers = await Promise.all(Array.from({ length: 12 }, () => create(key)));
    expect(answers.filter(isIn)).toHaveLength(3);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(9);
  });
});

describe('sandboxes under a provider key of the workspace', () => {
  it('a sandbox under the workspace’s own provider key is free here, and counts only in a budget that says so', async () => {
    const key = await workspace('byok');
    await setKey(key, 'workspace', OWN);
    const limits = { scope: 'workspace', period: 'month' };
    await budget(key, { ...limits, limit_micro_usd: 1 });
    const free = await create(key);
    expect(free.status).toBe(202);
    const counting = await budget(key, { ...limits, limit_micro_usd: 1, own_keys: true });
    const refused = await create(key);
    expect(refused).toMatchObject({
      status: 402,
      json: { code: 'SBX_BUDGET_EXCEEDED', budget_id: counting.budget_id },
    });
    const whole = refused.json.shortfall_micro_usd + 1;
    await dropBudget(key, counting.budget_id);
    const { budget_id } = await budget(key, { ...limits, limit_micro_usd: whole, own_keys: true });
    const counted = await server.call('POST', '/v1/sandboxes', { key, json: { profile: PROFILE.id } });
    expect(counted.status).toBe(201);
    const used = async () => {
      const { items } = await server.expect(200, 'GET', '/v1/budgets', { key });
      return items.find((one: { budget_id: string }) => one.budget_id === budget_id).used;
    };
    expect(await used()).toMatchObject([{ held_micro_usd: whole, left_micro_usd: 0 }]);
    const extended = await server.call('POST', `/v1/sandboxes/${counted.json.sandbox_id}/extend`, {
      key,
      json: { ttl: '1h' },
    });
    expect(extended.status).toBe(402);
    for (const one of [free, counted]) await destroy(key, one);
    // A window in which nothing is held or spent is not told of: its life may have been too short to cost anything.
    await until('it is settled', async () => ((await used())[0]?.held_micro_usd ?? 0) === 0);
    const spent = (await used())[0]?.spent_micro_usd ?? 0;
    expect(spent).toBeGreaterThanOrEqual(0);
    expect(spent).toBeLessThan(whole);
    expect(await balance(key)).toMatchObject({ spent_micro_usd: 0, held_micro_usd: 0 });
  });
});

describe('the books', () => {
  it('the books agree at the end', async () => {
    expect((await server.expect(200, 'GET', '/v1/credits/audit')).findings).toEqual([]);
  });
});
