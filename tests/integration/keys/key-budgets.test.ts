import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSaasStubExtension } from '../../../src/extensions/saas-stub/create.ts';
import type { RunningStub } from '../../../src/extensions/saas-stub/server/start-server.ts';
import { startStubServer } from '../../../src/extensions/saas-stub/server/start-server.ts';
import { loadConfig } from '../../../src/main/config/config.ts';
import type { RunningServer } from '../../../src/main/serve.ts';
import { serve } from '../../../src/main/serve.ts';
import { removeDir, temporaryDir } from '../../support/child-server.ts';
import { answerTo, send } from '../http/fixture.ts';

const dir = temporaryDir();
let stub: RunningStub;
let server: RunningServer;

interface Key {
  readonly key_id: string;
  readonly secret: string;
}

function call(method: string, path: string, json?: unknown, key?: string) {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return answerTo(send({ socketPath: server.socketPath }, method, path, { json, headers }));
}

async function must(status: number, method: string, path: string, json?: unknown, key?: string) {
  const answer = await call(method, path, json, key);
  if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.json;
}

const make = (json: object = {}, key?: string): Promise<Key> =>
  must(201, 'POST', '/v1/keys', { name: 'k', scopes: ['read', 'sandboxes', 'keys'], ...json }, key);

const create = async ({ secret }: Key) =>
  (await call('POST', '/v1/sandboxes?wait=none', { profile: 'profile.stub-metered' }, secret)).status;

const budget = (json: object) =>
  must(201, 'POST', '/v1/budgets', { scope: 'key', period: 'lifetime', limit_micro_usd: 1, ...json });

beforeAll(async () => {
  stub = await startStubServer();
  const env = {
    SANDBOXER_STATE_DIR: dir,
    SANDBOXER_LOG_LEVEL: 'silent',
    SANDBOXER_LOCAL: '0',
    SANDBOXER_DOCKER: '0',
  };
  server = await serve({
    config: loadConfig(env),
    env,
    extensions: [createSaasStubExtension({ transport: stub.transport() })],
  });
  await must(200, 'POST', '/v1/credits/grants', { amount_micro_usd: 100_000_000 });
});
afterAll(async () => {
  await server?.stop();
  await stub?.stop();
  removeDir(dir);
});

describe('the budget of a key', () => {
  it('the budget of a key follows every rotation, by the key, by an administrator, and of a rotated key', async () => {
    const key = await make();
    await budget({ value: key.key_id });
    expect(await create(key)).toBe(402);
    const second: Key = await must(201, 'POST', `/v1/keys/${key.key_id}/rotate`, {}, key.secret);
    const third: Key = await must(201, 'POST', `/v1/keys/${second.key_id}/rotate`, {});
    expect([await create(second), await create(third)]).toEqual([401, 402]);
  });

  it('set on a successor counts the whole line', async () => {
    const key = await make();
    expect(await create(key)).toBe(202);
    const second: Key = await must(201, 'POST', `/v1/keys/${key.key_id}/rotate`, { overlap: 60 });
    await budget({ value: second.key_id });
    const third: Key = await must(201, 'POST', `/v1/keys/${second.key_id}/rotate`, {});
    expect([await create(key), await create(third)]).toEqual([402, 402]);
  });

  it('the budget of a key counts what the key makes, at every depth, also after a rotation of the maker', async () => {
    const key = await make();
    await budget({ value: key.key_id });
    const made = await make({}, key.secret);
    const below = await make({}, made.secret);
    await must(201, 'POST', `/v1/keys/${key.key_id}/rotate`, {});
    expect([await create(made), await create(below)]).toEqual([402, 402]);
  });

  it('a budget of each key is shared by the key, its successors and the keys they make', async () => {
    const probe = await budget({ value: null });
    const json = { profile: 'profile.stub-metered' };
    const { secret } = await make();
    const refusal = await must(402, 'POST', '/v1/sandboxes?wait=none', json, secret);
    await must(204, 'DELETE', `/v1/budgets/${probe.budget_id}`);
    const enoughForOne = refusal.shortfall_micro_usd + 1;
    const { budget_id } = await budget({ value: null, limit_micro_usd: enoughForOne });
    const key = await make();
    const made = await make({}, key.secret);
    expect(await create(key)).toBe(202);
    const successor: Key = await must(201, 'POST', `/v1/keys/${key.key_id}/rotate`, {}, key.secret);
    expect([await create(made), await create(successor)]).toEqual([402, 402]);
    expect(await create(await make())).toBe(202);
    await must(204, 'DELETE', `/v1/budgets/${budget_id}`);
  });

  it('the budget of a key is not left by rotating another key', async () => {
    const key = await make();
    const other = await make();
    const { budget_id } = await budget({ value: key.key_id });
    const rotated = await call('POST', `/v1/keys/${other.key_id}/rotate`, {}, key.secret);
    expect(rotated).toMatchObject({ status: 403, json: { code: 'SBX_FORBIDDEN', field: 'key_id' } });
    await must(204, 'DELETE', `/v1/budgets/${budget_id}`);
  });

  it('a budget of an actor is not left by making a key of another actor', async () => {
    const key = await make();
    const { budget_id } = await budget({ scope: 'actor', value: 'agt' });
    const made = await call('POST', '/v1/keys', { name: 'm', actor: 'atm' }, key.secret);
    expect(made).toMatchObject({ status: 403, json: { field: 'actor' } });
    await must(204, 'DELETE', `/v1/budgets/${budget_id}`);
    await make({ actor: 'atm' }, key.secret);
  });
});
