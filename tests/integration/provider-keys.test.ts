import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningStub } from '../../src/extensions/saas-stub/server/start-server.ts';
import { startStubServer } from '../../src/extensions/saas-stub/server/start-server.ts';
import { TestServer } from '../support/test-server.ts';

const OWN = 'vendor-key-of-alpha-0001';
const PLATFORM = 'vendor-key-of-platform-0002';
const PROFILE = {
  id: 'profile.stub-vendor',
  version: '1.0.0',
  extension: 'ext.saas-stub',
  isolation: { level: 'none' },
  network: { default: 'allow' },
  ttl: { default: '1h', max: '2h' },
};

let stub: RunningStub;
let server: TestServer;
let alpha: string;
let beta: string;
const masterKey: { file?: string; previous_file?: string } = {};

beforeAll(async () => {
  stub = await startStubServer({ keys: [OWN, PLATFORM] });
  const keyFile = join(stub.directory, 'configured.key');
  // The configuration's own key is refused: whatever works below works by a stored one.
  writeFileSync(keyFile, 'nobody');
  const saas_stub = { default: { url: stub.url, key_file: keyFile } };
  server = await TestServer.start((config) => ({
    extensions: { ...config.extensions, saas_stub },
    master_key: masterKey,
  }));
  alpha = await server.workspace('alpha');
  beta = await server.workspace('beta');
  for (const key of [alpha, beta]) await server.expect(201, 'POST', '/v1/profiles', { key, json: PROFILE });
});
afterAll(async () => {
  await server?.close();
  await stub?.stop();
});

const set = (key: string | undefined, secret: string, scope = 'workspace') =>
  server.call('PUT', '/v1/provider-keys', {
    ...(key !== undefined && { key }),
    json: { extension: 'ext.saas-stub', scope, secret },
  });
const create = (key: string, id: string) =>
  server.call('POST', '/v1/sandboxes', { key, json: { id, profile: PROFILE.id } });
const destroy = (key: string, id: string) => server.expect(200, 'DELETE', `/v1/sandboxes/${id}`, { key });
const keys = async (key: string) => (await server.expect(200, 'GET', '/v1/provider-keys', { key })).items;

describe('provider keys', () => {
  it('provider keys are tried at the vendor first, and not kept when it refuses them', async () => {
    const refused = await set(alpha, 'not-a-key-of-anybody');
    expect(refused.json).toMatchObject({
      status: 422,
      code: 'SBX_PROVIDER_KEY_REFUSED',
      fault: 'caller',
      field: 'secret',
    });
    expect(refused.text).not.toContain('not-a-key-of-anybody');
    expect(await keys(alpha)).toEqual([]);
    const unkeyed = { extension: 'ext.memory', secret: OWN };
    const answer = await server.call('PUT', '/v1/provider-keys', { key: alpha, json: unkeyed });
    expect(answer.json).toMatchObject({ code: 'SBX_INVALID_REQUEST', field: 'extension' });
    expect((await set(alpha, PLATFORM, 'platform')).json).toMatchObject({ code: 'SBX_FORBIDDEN' });
  });

  it('provider keys are shown by their last four characters only, to their own workspace only', async () => {
    const kept = await set(alpha, OWN);
    expect(kept.json).toMatchObject({ scope: 'workspace', hint: '0001', state: 'active' });
    expect(kept.text).not.toContain(OWN);
    expect(await keys(alpha)).toHaveLength(1);
    expect(await keys(beta)).toEqual([]);
  });

  it('provider keys of the workspace pay the vendor: nothing is held or charged, and the use is on record', async () => {
    expect((await create(alpha, 'own')).status).toBe(201);
    const balance = await server.expect(200, 'GET', '/v1/credits', { key: alpha });
    expect(balance).toMatchObject({ available_micro_usd: 0, held_micro_usd: 0, spent_micro_usd: 0 });
    const [{ provider_key_id: id }] = await keys(alpha);
    const route = await server.expect(200, 'GET', '/v1/sandboxes/own/route', { key: alpha });
    expect(route.attempts).toMatchObject([{ provider_key_id: id, state: 'won' }]);
    const inUse = await server.call('DELETE', `/v1/provider-keys/${id}`, { key: alpha });
    expect(inUse.json).toMatchObject({ code: 'SBX_CONFLICT' });
    await server.expect(200, 'POST', '/v1/sandboxes/own/extend', { key: alpha, json: { ttl: '90m' } });
    await destroy(alpha, 'own');
    const { items } = await server.expect(200, 'GET', '/v1/credits/transfers', { key: alpha });
    expect(items.length).toBeGreaterThan(0);
    for (const item of items) expect(item).toMatchObject({ kind: 'own_key', reference: id });
    const usage = await server.expect(200, 'GET', '/v1/sandboxes/own/usage', { key: alpha });
    expect(usage.items.at(-1)).toMatchObject({ payer: 'own_key', charged_micro_usd: 0, provider_key_id: id });
    expect((await server.expect(200, 'GET', '/v1/credits/audit')).findings).toEqual([]);
  });

  it('use under provider keys of the platform is charged', async () => {
    expect((await set(undefined, PLATFORM, 'platform')).json).toMatchObject({ workspace_id: null });
    expect((await create(beta, 'unpaid')).status).toBe(402);
    const json = { amount_micro_usd: 1_000_000 };
    await server.expect(200, 'POST', '/v1/credits/grants', { key: beta, json });
    expect((await create(beta, 'charged')).status).toBe(201);
    const balance = await server.expect(200, 'GET', '/v1/credits', { key: beta });
    expect(balance.held_micro_usd).toBeGreaterThan(0);
    expect(await keys(beta)).toEqual([]);
  });

  it('provider keys that the vendor refuses are isolated, and no other with them', async () => {
    await stub.setKeys(PLATFORM);
    const failed = await create(alpha, 'refused');
    expect(failed.json).toMatchObject({ code: 'SBX_BACKEND_AUTH' });
    expect(await keys(alpha)).toMatchObject([{ state: 'refused' }]);
    const excluded = await create(alpha, 'excluded');
    expect(excluded.json).toMatchObject({
      code: 'SBX_NO_ROUTE',
      candidates: expect.arrayContaining([
        expect.objectContaining({ excluded_by: [expect.objectContaining({ code: 'key_refused' })] }),
      ]),
    });
    const told = (await server.events({ key: alpha })).filter(({ type }) =>
      type.endsWith('provider_key.refused'),
    );
    expect(told).toHaveLength(1);
    expect((await create(beta, 'unharmed')).status).toBe(201);
    await destroy(beta, 'unharmed');
    await stub.setKeys(OWN, PLATFORM);
    const [{ provider_key_id: id }] = await keys(alpha);
    const tested = await server.expect(200, 'POST', `/v1/provider-keys/${id}/test`, { key: alpha });
    expect(tested).toMatchObject({ state: 'active', refused_at: null });
    expect((await create(alpha, 'again')).status).toBe(201);
    await destroy(alpha, 'again');
    expect((await server.expect(200, 'GET', '/v1/credits/audit')).findings).toEqual([]);
  });

  it('provider keys are nowhere on the disk in the clear, nor in the audit log', async () => {
    const audit = await server.call('GET', '/v1/audit?limit=200', { key: alpha });
    const stored = readdirSync(server.dir).filter((name) => name.startsWith('sandboxer.db'));
    const bytes = Buffer.concat(stored.map((name) => readFileSync(join(server.dir, name))));
    for (const secret of [OWN, PLATFORM]) {
      expect(bytes.includes(secret)).toBe(false);
      expect(audit.text).not.toContain(secret);
    }
  });

  it('provider keys follow a new master key, and without any the server does not start', async () => {
    const next = join(server.dir, 'next', 'master.key');
    mkdirSync(join(server.dir, 'next'));
    await server.stop();
    masterKey.file = join(server.dir, 'missing.key');
    await expect(server.start()).rejects.toThrow('is missing');
    const wrong = join(server.dir, 'wrong.key');
    writeFileSync(wrong, Buffer.alloc(32, 7).toString('base64'), { mode: 0o600 });
    masterKey.file = wrong;
    await expect(server.start()).rejects.toMatchObject({
      code: 'SBX_MASTER_KEY',
      detail: expect.stringContaining('2 of 2'),
    });
    writeFileSync(next, Buffer.alloc(32, 9).toString('base64'), { mode: 0o600 });
    masterKey.file = next;
    masterKey.previous_file = join(server.dir, 'master.key');
    await server.start();
    expect((await create(alpha, 'between')).status).toBe(201);
    const moved = await server.expect(200, 'POST', '/v1/provider-keys/reseal');
    expect(moved).toEqual({ resealed: 2, unchanged: 0 });
    expect(await server.expect(200, 'POST', '/v1/provider-keys/reseal')).toEqual({
      resealed: 0,
      unchanged: 2,
    });
    await server.stop();
    rmSync(masterKey.previous_file);
    delete masterKey.previous_file;
    await server.start();
    await destroy(alpha, 'between');
    expect((await create(alpha, 'after')).status).toBe(201);
    await destroy(alpha, 'after');
  });
});
