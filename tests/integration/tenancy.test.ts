import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestServer, until } from '../support/test-server.ts';
import { MEMORY_PROFILE } from './http/fixture.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.close());

describe('orgs and workspaces', () => {
  it('orgs and workspaces are made, renamed, listed and deleted by the server’s administrator', async () => {
    await server.expect(201, 'POST', '/v1/orgs', { json: { org_id: 'acme', name: 'Acme' } });
    const clash = await server.call('POST', '/v1/orgs', { json: { org_id: 'acme' } });
    expect(clash).toMatchObject({ status: 409, json: { retryable: false } });
    const made = await server.expect(201, 'POST', '/v1/workspaces', {
      json: { workspace_id: 'acme-dev', org_id: 'acme' },
    });
    expect(made).toMatchObject({ workspace_id: 'acme-dev', org_id: 'acme', name: 'acme-dev' });
    await server.expect(404, 'POST', '/v1/workspaces', { json: { workspace_id: 'x', org_id: 'nobody' } });
    await server.expect(200, 'PATCH', '/v1/workspaces/acme-dev', { json: { name: 'Development' } });
    expect(await server.expect(200, 'GET', '/v1/workspaces/acme-dev')).toMatchObject({ name: 'Development' });
    expect((await server.expect(200, 'GET', '/v1/workspaces?org=acme')).items).toHaveLength(1);
    await server.expect(200, 'PATCH', '/v1/orgs/acme', { json: { name: 'ACME' } });
    expect((await server.call('DELETE', '/v1/orgs/acme')).status).toBe(409);

    const key = await server.key('acme-dev', 'adm', ['read', 'sandboxes', 'webhooks', 'profiles']);
    await server.expect(201, 'POST', '/v1/profiles', { key, json: MEMORY_PROFILE });
    await server.expect(201, 'POST', '/v1/webhooks', { key, json: { url: 'https://hook.example/' } });
    const id = await server.sandbox({ key });
    expect((await server.call('DELETE', '/v1/workspaces/acme-dev')).status).toBe(409);
    await server.expect(200, 'DELETE', `/v1/sandboxes/${id}`, { key });
    await server.expect(204, 'DELETE', '/v1/workspaces/acme-dev');
    await server.expect(401, 'GET', '/v1/whoami', { key });
    await server.expect(404, 'GET', '/v1/workspaces/acme-dev');
    expect((await server.expect(200, 'GET', '/v1/webhooks')).items).toEqual([]);
    await server.expect(409, 'POST', '/v1/workspaces', {
      json: { workspace_id: 'acme-dev', org_id: 'acme' },
    });
    await server.expect(404, 'POST', '/v1/keys', { json: { name: 'late', workspace_id: 'acme-dev' } });
    await server.expect(204, 'DELETE', '/v1/orgs/acme');
    await server.expect(404, 'GET', '/v1/orgs/acme');
    expect((await server.call('DELETE', '/v1/workspaces/default')).status).toBe(409);
  });

  it('a workspace is chosen by the header, by an administrator of the server alone', async () => {
    const team = await server.workspace('team');
    await server.expect(201, 'POST', '/v1/profiles', { key: team, json: MEMORY_PROFILE });
    const headers = { 'sandboxer-workspace': 'team' };
    const id = await server.sandbox({ headers, id: 'same-name' });
    await server.sandbox({ id: 'same-name' });
    expect(await server.expect(200, 'GET', '/v1/whoami', { headers })).toMatchObject({
      workspace_id: 'team',
      local: true,
    });
    expect(await server.expect(200, 'GET', `/v1/sandboxes/${id}`, { key: team })).toMatchObject({
      workspace_id: 'team',
    });
    // In one workspace the name means one sandbox, and nothing of the others is seen.
    expect(await server.expect(200, 'GET', `/v1/sandboxes/${id}`, { headers })).toMatchObject({
      workspace_id: 'team',
    });
    const { items } = await server.expect(200, 'GET', '/v1/sandboxes', { headers });
    expect(new Set(items.map((item: { workspace_id: string }) => item.workspace_id))).toEqual(
      new Set(['team']),
    );

    expect(
      (
        await server.call('GET', '/v1/sandboxes', {
          key: team,
          headers: { 'sandboxer-workspace': 'default' },
        })
      ).status,
    ).toBe(403);
    // Its own workspace anybody may name: a client that always sends the header works with any key.
    const own = await server.call('GET', '/v1/whoami', { key: team, headers });
    expect(own.json).toMatchObject({ workspace_id: 'team' });
    const agent = await server.key('default', 'agt', ['read', 'server']);
    expect((await server.call('GET', '/v1/sandboxes', { key: agent, headers })).status).toBe(403);
    const admin = await server.key('default', 'adm', ['read', 'server']);
    expect((await server.call('GET', '/v1/sandboxes', { key: admin, headers })).status).toBe(200);
    expect(
      (await server.call('GET', '/v1/sandboxes', { headers: { 'sandboxer-workspace': 'nowhere' } })).status,
    ).toBe(404);
    expect(
      (await server.call('GET', '/v1/sandboxes', { headers: { 'sandboxer-workspace': 'No Such' } })).status,
    ).toBe(400);
  });
});

describe('keys', () => {
  it('keys report their holder, and their last use', async () => {
    const key = await server.key('default', 'atm', ['sandboxes']);
    expect(await server.expect(200, 'GET', '/v1/whoami', { key })).toMatchObject({
      actor: 'atm',
      workspace_id: 'default',
      org_id: 'default',
      key_name: 'atm of default',
      scopes: ['sandboxes'],
      local: false,
    });
    const { key_id } = await server.expect(200, 'GET', '/v1/whoami', { key });
    const shown = async () =>
      (await server.expect(200, 'GET', '/v1/keys')).items.find(
        (item: { key_id: string }) => item.key_id === key_id,
      );
    await until('its use is noted', async () => (await shown()).last_used_at !== null);
    const first = (await shown()).last_used_at;
    await sleep(20);
    await server.expect(200, 'GET', '/v1/whoami', { key });
    await sleep(100);
    expect((await shown()).last_used_at).toBe(first);
  });

  it('keys are kept as hashes alone: no secret is in any file of the server', async () => {
    const { secret, key_id } = await server.expect(201, 'POST', '/v1/keys', { json: { name: 'kept' } });
    await server.expect(200, 'GET', '/v1/whoami', { key: secret });
    const files = readdirSync(server.dir, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    const holding = (text: string) =>
      files.filter((entry) => readFileSync(join(entry.parentPath, entry.name)).includes(text));
    expect(holding(key_id)).not.toEqual([]);
    expect(holding(secret)).toEqual([]);
    expect(holding(secret.replace(/^sk-sbx_/, ''))).toEqual([]);
  });

  it('keys end when their time is over', async () => {
    const { secret } = await server.expect(201, 'POST', '/v1/keys', {
      json: { name: 'short', expires_in: 3 },
    });
    await server.expect(200, 'GET', '/v1/whoami', { key: secret });
    await until(
      'it is over',
      async () => (await server.call('GET', '/v1/whoami', { key: secret })).status === 401,
    );
  });

  it('rotate: at once, or with an overlap', async () => {
    const make = () =>
      server.expect(201, 'POST', '/v1/keys', { json: { name: 'r', scopes: ['read'], expires_in: '10m' } });
    const one = await make();
    const next = await server.expect(201, 'POST', `/v1/keys/${one.key_id}/rotate`);
    expect(next).toMatchObject({ name: 'r', scopes: ['read'], actor: 'agt', revoked_at: null });
    expect(Date.parse(next.expires_at) - Date.parse(next.created_at)).toBe(600_000);
    await server.expect(401, 'GET', '/v1/whoami', { key: one.secret });
    await server.expect(200, 'GET', '/v1/whoami', { key: next.secret });
    expect((await server.call('POST', `/v1/keys/${one.key_id}/rotate`)).status).toBe(409);

    const two = await make();
    await server.expect(201, 'POST', `/v1/keys/${two.key_id}/rotate`, { json: { overlap: '3s' } });
    await server.expect(200, 'GET', '/v1/whoami', { key: two.secret });
    const status = async () => (await server.call('GET', '/v1/whoami', { key: two.secret })).status;
    await until('the overlap is over', async () => (await status()) === 401);
  });

  it('keys give no more than they have, by rotation either', async () => {
    const maker = await server.key('default', 'agt', ['keys', 'read']);
    const admin = await server.expect(201, 'POST', '/v1/keys', {
      json: { name: 'adm', actor: 'adm', scopes: ['server'] },
    });
    expect((await server.call('POST', `/v1/keys/${admin.key_id}/rotate`, { key: maker })).status).toBe(403);
    await server.expect(200, 'GET', '/v1/whoami', { key: admin.secret });
    const wider = { name: 'w', scopes: ['webhooks'] };
    expect((await server.call('POST', '/v1/keys', { key: maker, json: wider })).status).toBe(403);
    expect(
      (
        await server.call('POST', '/v1/keys', {
          key: maker,
          json: { name: 'w', actor: 'adm', scopes: ['read'] },
        })
      ).status,
    ).toBe(403);
  });

  it('keys reach what their scopes say', async () => {
    const reader = await server.key('default', 'agt', ['read']);
    const refused = [
      ['POST', '/v1/webhooks', { url: 'https://hook.example/' }],
      ['GET', '/v1/webhooks'],
      ['GET', '/v1/sinks'],
      ['GET', '/v1/orgs'],
      ['POST', '/v1/orgs', { org_id: 'x' }],
      ['GET', '/v1/workspaces'],
      ['GET', '/v1/audit'],
      ['GET', '/v1/keys'],
      ['POST', '/v1/credits/grants', { amount_micro_usd: 1 }],
    ] as const;
    for (const [method, path, json] of refused) {
      const answer = await server.call(method, path, { key: reader, ...(json && { json }) });
      expect([path, answer.status, answer.json.code]).toEqual([path, 403, 'SBX_FORBIDDEN']);
    }
    await server.expect(200, 'GET', '/v1/sandboxes', { key: reader });
  });
});

describe('webhook addresses', () => {
  it.each([
    'https://127.0.0.1/x',
    'https://localhost/x',
    'https://169.254.169.254/latest/meta-data/',
    'https://[::ffff:10.0.0.1]/',
    'http://hook.example/',
  ])('%s is refused', async (url) => {
    const answer = await server.call('POST', '/v1/webhooks', { json: { url } });
    expect(answer).toMatchObject({ status: 400, json: { code: 'SBX_INVALID_REQUEST', field: 'url' } });
  });

  it('a workspace has so many webhooks and no more', async () => {
    const key = await server.workspace('many');
    const make = () => server.call('POST', '/v1/webhooks', { key, json: { url: 'https://hook.example/' } });
    const answers = await Promise.all(Array.from({ length: 21 }, make));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(20).fill(201), 429]);
  });
});
