import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AuditEntry } from '../../src/contract/tenancy/audit.ts';
import { TestServer } from '../support/test-server.ts';
import { MEMORY_PROFILE } from './http/fixture.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.close());

async function audit(query = '', key?: string): Promise<AuditEntry[]> {
  return (await server.expect(200, 'GET', `/v1/audit${query}`, key === undefined ? {} : { key })).items;
}

it('the audit log has every change: caller, operation, object and outcome', async () => {
  const key = await server.workspace('audited');
  const { key_id } = await server.expect(200, 'GET', '/v1/whoami', { key });
  await server.expect(201, 'POST', '/v1/profiles', { key, json: MEMORY_PROFILE });
  const consumer = { harness: 'wise-validator', run_id: 'r1' };
  const { sandbox_id } = await server.expect(201, 'POST', '/v1/sandboxes', {
    key,
    json: { profile: MEMORY_PROFILE.id, consumer },
    headers: { 'x-request-id': 'my-request' },
  });
  await server.call('POST', `/v1/sandboxes/${sandbox_id}/exec`, { key, json: { command: ['true'] } });
  await server.expect(404, 'POST', '/v1/sandboxes/none/pause', { key });
  await server.expect(400, 'POST', '/v1/sandboxes', { key, json: { profile: 'profile.none', ttl: 'x' } });
  await server.expect(200, 'DELETE', `/v1/sandboxes/${sandbox_id}`, { key });
  await server.expect(200, 'GET', '/v1/sandboxes', { key });

  const entries = (await audit('', key)).toReversed();
  expect(entries.map(({ action, target, outcome }) => [action, target, outcome])).toEqual([
    ['createWorkspace', 'audited', 'ok'],
    ['createKey', key_id, 'ok'],
    ['pushProfile', `${MEMORY_PROFILE.id}@1.0.0`, 'ok'],
    ['createSandbox', sandbox_id, 'ok'],
    ['execInSandbox', sandbox_id, 'ok'],
    ['pauseSandbox', 'none', 'SBX_NOT_FOUND'],
    ['createSandbox', '', 'SBX_INVALID_REQUEST'],
    ['destroySandbox', sandbox_id, 'ok'],
  ]);
  expect(entries[3]).toMatchObject({
    key_id,
    actor: 'adm',
    consumer,
    request_id: 'my-request',
    workspace_id: 'audited',
  });
  expect(entries[0]).toMatchObject({ key_id: null, actor: 'adm' });
  expect(await audit(`?action=createSandbox&limit=1`, key)).toHaveLength(1);
  expect(await audit(`?key_id=${key_id}&target=none`, key)).toHaveLength(1);
});

it('the audit log has an administrator’s change in its transaction, and a refusal before its answer', async () => {
  const { store } = server.running.control;
  // Past every batch: what is found by a plain read was there when the answer came.
  const stored = (action: string) =>
    store.read('test', (tx) => tx.audit.list({ workspaceId: null, action, limit: 1 }));
  const key = await server.key('default', 'agt', ['read', 'keys']);
  const { key_id } = await server.expect(200, 'GET', '/v1/whoami', { key });
  const cases = [
    ['grantCredits', 'POST', '/v1/credits/grants', { amount_micro_usd: 5, reference: 'x' }],
    ['createWebhook', 'POST', '/v1/webhooks', { url: 'https://hook.example/path-token?q=query-token' }],
    ['createOrg', 'POST', '/v1/orgs', { org_id: 'audit-org' }],
    ['pushProfile', 'POST', '/v1/profiles', { ...MEMORY_PROFILE, version: '1.0.1' }],
  ] as const;
  for (const [action, method, path, json] of cases) {
    const refused = await server.call(method, path, { key, json });
    expect([action, refused.status]).toEqual([action, 403]);
    expect(await stored(action)).toMatchObject([{ action, outcome: 'SBX_FORBIDDEN', keyId: key_id }]);
    const granted = await server.call(method, path, { json });
    expect([action, granted.status < 300]).toEqual([action, true]);
    expect(await stored(action)).toMatchObject([{ action, outcome: 'ok', keyId: null }]);
  }
  const elevate = { profile: MEMORY_PROFILE.id, elevated: true };
  const maker = await server.key('default', 'agt', ['sandboxes']);
  const refusal = await server.call('POST', '/v1/sandboxes', { key: maker, json: elevate });
  expect(refusal.status).toBe(403);
  expect(await stored('createSandbox')).toMatchObject([{ outcome: 'SBX_ELEVATION_REFUSED' }]);
  // Admitted, it is on record, whatever the backend then makes of it.
  await server.call('POST', '/v1/sandboxes', { json: { ...elevate, id: 'risen' } });
  expect(await stored('elevateSandbox')).toMatchObject([{ target: 'risen', outcome: 'ok', actor: 'adm' }]);
});

it('the audit log has no secrets in it', async () => {
  const made = await server.expect(201, 'POST', '/v1/keys', { json: { name: 'secretive' } });
  const rotated = await server.expect(201, 'POST', `/v1/keys/${made.key_id}/rotate`);
  const hook = await server.expect(201, 'POST', '/v1/webhooks', {
    json: { url: 'https://hook.example/path-token?q=query-token' },
  });
  const id = await server.sandbox();
  const exec = { command: ['true'], env: { TOKEN: 'env-secret' } };
  await server.call('POST', `/v1/sandboxes/${id}/exec`, { json: exec });
  const text = JSON.stringify(await audit('?limit=1000'));
  for (const secret of [
    made.secret,
    rotated.secret,
    hook.secret,
    'path-token',
    'query-token',
    'env-secret',
  ]) {
    expect(text).not.toContain(secret);
  }
  expect(text).toContain('https://hook.example');
});

it('the audit log is for administrators, each in their own workspace', async () => {
  const key = await server.workspace('apart');
  await server.sandbox({ id: 'of-default' });
  const seen = await audit('?limit=1000', key);
  expect(new Set(seen.map(({ workspace_id }) => workspace_id))).toEqual(new Set(['apart']));
  const agent = await server.key('apart', 'agt', ['read']);
  expect((await server.call('GET', '/v1/audit', { key: agent })).status).toBe(403);
  const pages = [];
  let cursor = '';
  do {
    const page = await server.expect(200, 'GET', `/v1/audit?limit=2${cursor}`);
    pages.push(...page.items);
    cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`;
  } while (cursor !== '');
  expect(pages.map(({ seq }) => seq)).toEqual((await audit('?limit=1000')).map(({ seq }) => seq));
});

it('the audit log outlives a stop: pending records are written then', async () => {
  const id = await server.sandbox();
  await server.stop();
  await server.start();
  expect(await audit(`?action=createSandbox&target=${id}`)).toHaveLength(1);
});
