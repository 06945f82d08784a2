import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Snapshot } from '../../../src/contract/assets/snapshot.ts';
import { Sandbox, SandboxPage } from '../../../src/contract/sandboxes/sandbox.ts';
import type { Fixture } from './fixture.ts';
import { MEMORY_PROFILE, startFixture } from './fixture.ts';

const profile = MEMORY_PROFILE.id;
let f: Fixture;
beforeAll(async () => {
  f = await startFixture();
});
afterAll(() => f.close());

const post = (path: string, json?: unknown, headers?: Record<string, string>) =>
  f.call('POST', path, { ...(json === undefined ? {} : { json }), ...(headers ? { headers } : {}) });

describe('create', () => {
  test('create waits until the sandbox is ready and returns its place', async () => {
    const created = await post('/v1/sandboxes', { profile, labels: { team: 'a' } });
    expect(created.status).toBe(201);
    const sandbox = Sandbox.parse(created.json);
    expect(sandbox).toMatchObject({ state: 'ready', reused: false, labels: { team: 'a' } });
    expect(created.headers.location).toBe(`/v1/sandboxes/${sandbox.sandbox_id}`);
    const shown = await f.call('GET', created.headers.location as string);
    expect(Sandbox.parse(shown.json).uid).toBe(sandbox.uid);
    expect(sandbox.reachability?.exec_url).toBe(sandbox.links.exec);
  });

  test('create answers 202 at once when wait is none', async () => {
    const created = await post('/v1/sandboxes?wait=none', { profile });
    expect(created.status).toBe(202);
    const waited = await f.call('GET', `/v1/sandboxes/${created.json.sandbox_id}/wait?for=ready&timeout=10s`);
    expect(waited.status).toBe(200);
    expect(waited.json.state).toBe('ready');
  });

  test('a living sandbox of the same scope is found again', async () => {
    const request = { profile, consumer: { actor: 'agt', harness: 'glas-harness', session_id: 's-reuse' } };
    const first = await post('/v1/sandboxes', request);
    const second = await post('/v1/sandboxes', request);
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(second.json).toMatchObject({ sandbox_id: first.json.sandbox_id, reused: true });
  });

  test('a repeated Idempotency-Key is the same sandbox; with another request it is refused', async () => {
    const headers = { 'idempotency-key': 'k-1' };
    const first = await post('/v1/sandboxes', { profile }, headers);
    const again = await post('/v1/sandboxes', { profile }, headers);
    const other = await post('/v1/sandboxes', { profile, ttl: '10m' }, headers);
    expect([first.status, again.status, other.status]).toEqual([201, 200, 422]);
    expect(again.json.uid).toBe(first.json.uid);
    expect(other.json.code).toBe('SBX_IDEMPOTENCY_MISMATCH');
    const many = await Promise.all(
      Array.from({ length: 8 }, () => post('/v1/sandboxes', { profile }, { 'idempotency-key': 'k-2' })),
    );
    expect(new Set(many.map(({ json }) => json.uid)).size).toBe(1);
    expect(many.filter(({ status }) => status === 201)).toHaveLength(1);
  });

  test('limits with which nothing runs are refused before a backend is asked', async () => {
    for (const [name, value] of [
      ['memory_mb', 1],
      ['memory_mb', '5MB'],
      ['pids', 3],
    ] as const) {
      const refused = await post('/v1/sandboxes', { profile, resources: { [name]: value } });
      expect(refused.json).toMatchObject({
        status: 400,
        code: 'SBX_INVALID_REQUEST',
        retryable: false,
        field: `resources.${name}`,
        detail: expect.stringMatching(/at least 6/),
      });
    }
  });

  test('a body of nothing asks for the canary', async () => {
    const created = await post('/v1/sandboxes');
    expect(created.status).toBe(409);
    expect(created.json.code).toBe('SBX_NO_ROUTE');
    expect(created.json.candidates.length).toBeGreaterThan(0);
  });

  test('create takes an id of the caller', async () => {
    const created = await post('/v1/sandboxes', { profile, id: 'my.own-1' });
    const again = await post('/v1/sandboxes', { profile, id: 'my.own-1' });
    const clash = await post('/v1/sandboxes', { profile, id: 'my.own-1', ttl: '5m' });
    expect([created.status, again.status, clash.status]).toEqual([201, 200, 409]);
    expect(clash.json).toMatchObject({ code: 'SBX_ID_TAKEN', field: 'id', creation: 'not_created' });
  });
});

test('list: pages, filters, and nothing of other states', async () => {
  const labels = { suite: 'list' };
  for (let n = 0; n < 5; n += 1)
    await post('/v1/sandboxes', { profile, labels: { ...labels, n: String(n) } });
  const seen: string[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const at: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = await f.call('GET', `/v1/sandboxes?label=suite=list&limit=2${at}`);
    const { items, next_cursor } = SandboxPage.parse(page.json);
    seen.push(...items.map((item) => item.labels.n as string));
    cursor = next_cursor;
  }
  expect(seen).toEqual(['4', '3', '2', '1', '0']);
  const one = await f.call(
    'GET',
    '/v1/sandboxes?label=suite%3Dlist&label=n=3&state=ready,active&state=paused',
  );
  expect(one.json.items).toHaveLength(1);
  const none = await f.call('GET', '/v1/sandboxes?label=suite=list&state=destroyed');
  expect(none.json.items).toHaveLength(0);
  const byProfile = await f.call('GET', '/v1/sandboxes?profile=stub-memory&extension=ext.memory&limit=500');
  expect(byProfile.json.items.length).toBeGreaterThan(4);
  const bad = await f.call('GET', '/v1/sandboxes?limit=501');
  expect(bad.json).toMatchObject({ status: 400, code: 'SBX_INVALID_REQUEST', field: 'limit' });
  const forged = await f.call('GET', '/v1/sandboxes?cursor=nonsense');
  expect(forged.json).toMatchObject({ code: 'SBX_INVALID_REQUEST', field: 'cursor' });
});

test('a sandbox takes every verb of its life', async () => {
  const id = await f.create();
  const url = `/v1/sandboxes/${id}`;
  const extended = await post(`${url}/extend`, { ttl: '90m' });
  expect(extended.status).toBe(200);
  const extendedBy = Date.parse(extended.json.expires_at) - Date.now();
  expect(extendedBy).toBeGreaterThan(89 * 60_000);

  const paused = await post(`${url}/pause`);
  expect(paused.json).toMatchObject({ state: 'paused', pause_kind: 'frozen' });
  const refused = await post(`${url}/exec`, { command: ['true'] });
  expect(refused.json).toMatchObject({ status: 409, code: 'SBX_INVALID_STATE' });
  expect((await post(`${url}/resume`)).json.state).toBe('active');

  await f.call('PUT', `${url}/files?path=/a.txt`, { body: 'kept' });
  const snapshot = await post(`${url}/snapshots`, { name: 'first', labels: { k: 'v' } });
  expect(snapshot.status).toBe(201);
  const { snapshot_id } = Snapshot.parse(snapshot.json);
  expect(snapshot.headers.location).toBe(`/v1/snapshots/${snapshot_id}`);
  const restored = await post(`/v1/snapshots/${snapshot_id}/restore`, { ttl: '10m' });
  expect(restored.status).toBe(201);
  const copy = await f.call('GET', `/v1/sandboxes/${restored.json.sandbox_id}/files?path=/a.txt`);
  expect(copy.text).toBe('kept');
  const forked = await post(`${url}/fork`, {});
  expect(forked.status).toBe(201);
  expect((await f.call('GET', `/v1/sandboxes/${forked.json.sandbox_id}/files?path=/a.txt`)).text).toBe(
    'kept',
  );

  const renamed = await f.call('PATCH', `/v1/snapshots/${snapshot_id}`, { json: { name: 'second' } });
  expect(renamed.json.name).toBe('second');
  const listed = await f.call('GET', `/v1/snapshots?sandbox_id=${id}`);
  expect(listed.json.items.map((item: { name: string }) => item.name)).toEqual(['second']);
  const deleted = await f.call('DELETE', `/v1/snapshots/${snapshot_id}`);
  expect(deleted.json.state).toBe('deleted');
  expect((await f.call('DELETE', `/v1/snapshots/${snapshot_id}`)).status).toBe(200);
  expect((await f.call('GET', `/v1/snapshots/${snapshot_id}`)).status).toBe(404);

  const recreated = await post(`${url}/recreate`);
  expect(recreated.status).toBe(200);
  expect(recreated.json).toMatchObject({ sandbox_id: id, generation: 2, state: 'ready' });
  expect((await f.call('GET', `${url}/files?path=/a.txt`)).json.code).toBe('SBX_PATH_NOT_FOUND');

  const route = await f.call('GET', `${url}/route`);
  expect(route.json.plan.candidates[0]).toMatchObject({ extension: 'ext.memory', rank: 0 });
  expect(route.json.attempts.map((attempt: { generation: number }) => attempt.generation)).toEqual([1, 2]);
  const usage = await f.call('GET', `${url}/usage`);
  expect(usage.json.items).toHaveLength(2);

  const destroyed = await f.call('DELETE', url);
  expect([destroyed.status, destroyed.json.state]).toEqual([200, 'destroyed']);
  expect((await f.call('DELETE', url)).status).toBe(200);
  const gone = await post(`${url}/exec`, { command: ['true'] });
  expect(gone.json).toMatchObject({ status: 410, code: 'SBX_GONE' });
});

test('waiting ends when it happens, or when the time is up', async () => {
  const id = await f.create();
  const early = await f.call('GET', `/v1/sandboxes/${id}/wait?for=destroyed&timeout=0`);
  expect([early.status, early.json.state]).toEqual([202, 'ready']);
  const waiting = f.call('GET', `/v1/sandboxes/${id}/wait?for=destroyed&timeout=20s`);
  const asked = await f.call('DELETE', `/v1/sandboxes/${id}?wait=none`);
  expect([200, 202]).toContain(asked.status);
  const done = await waiting;
  expect([done.status, done.json.state]).toEqual([200, 'destroyed']);
});

test('profiles, extensions, routes, credits and keys', async () => {
  const yaml = [
    'id: profile.stub-yaml',
    'version: "1.0.0"',
    'extension: ext.memory',
    'isolation: { level: none }',
    'network: { default: allow }',
  ].join('\n');
  const headers = { 'content-type': 'application/yaml' };
  const pushed = await f.call('POST', '/v1/profiles', { body: yaml, headers });
  expect(pushed.status).toBe(201);
  expect(pushed.json).toMatchObject({ source: 'api', available: true, unavailable_reason: null });
  expect((await f.call('POST', '/v1/profiles', { body: yaml, headers })).status).toBe(200);
  const changed = await f.call('POST', '/v1/profiles', { body: `${yaml}\ndescription: x`, headers });
  expect(changed.json).toMatchObject({ status: 409, code: 'SBX_PROFILE_IMMUTABLE' });
  const broken = await f.call('POST', '/v1/profiles', {
    body: `${yaml}\nttl: { default: 9h, max: 1h }`,
    headers,
  });
  expect(broken.json).toMatchObject({ status: 422, code: 'SBX_PROFILE_INVALID' });
  expect(broken.json.issues[0]).toMatchObject({ line: 6, field: 'ttl.default' });

  const shown = await f.call('GET', '/v1/profiles/profile.stub-yaml%401.0.0');
  expect(shown.json.profile.version).toBe('1.0.0');
  const list = await f.call('GET', '/v1/profiles');
  const canary = list.json.items.find(
    (item: { profile: { id: string } }) => item.profile.id === 'profile.sandbox-canary',
  );
  expect(canary).toMatchObject({ available: false });
  expect(canary.unavailable_reason).toContain('ext.memory');
  expect((await f.call('GET', '/v1/profiles/profile.nope')).json.code).toBe('SBX_PROFILE_NOT_FOUND');

  const plan = await post('/v1/routes/resolve', { profile });
  expect(plan.json.candidates[0]).toMatchObject({ extension: 'ext.memory', rank: 0 });
  const extension = await f.call('GET', '/v1/extensions/ext.memory');
  expect(extension.json).toMatchObject({ id: 'ext.memory', health: { status: 'healthy' } });
  expect((await f.call('GET', '/v1/extensions')).json.items).toHaveLength(1);
  expect((await f.call('GET', '/v1/extensions/ext.none')).status).toBe(404);

  const before = (await f.call('GET', '/v1/credits')).json.available_micro_usd;
  const grant = { amount_micro_usd: 5, reference: 'r-1' };
  expect((await post('/v1/credits/grants', grant)).json.available_micro_usd).toBe(before + 5);
  expect((await post('/v1/credits/grants', grant)).json.available_micro_usd).toBe(before + 5);
  const transfers = await f.call('GET', '/v1/credits/transfers?limit=1');
  expect(transfers.json.items[0].kind).toBe('grant');
  const rest = await f.call('GET', `/v1/credits/transfers?cursor=${transfers.json.next_cursor}`);
  expect(rest.json.items.length).toBeGreaterThan(0);

  const key = await post('/v1/keys', { name: 'ci', scopes: ['read'] });
  expect(key.status).toBe(201);
  const { key_id, secret } = key.json;
  const keys = await f.call('GET', '/v1/keys');
  expect(keys.text).not.toContain(secret);
  const withKey = { headers: { authorization: `Bearer ${secret}` } };
  expect((await f.call('GET', '/v1/sandboxes', withKey)).status).toBe(200);
  const forbidden = await f.call('POST', '/v1/sandboxes', {
    json: { profile },
    ...withKey,
    headers: { ...withKey.headers, 'content-type': 'application/json' },
  });
  expect(forbidden.json).toMatchObject({ status: 403, code: 'SBX_FORBIDDEN' });
  expect((await f.call('DELETE', `/v1/keys/${key_id}`)).json.revoked_at).not.toBeNull();
  expect((await f.call('GET', '/v1/sandboxes', withKey)).json).toMatchObject({
    status: 401,
    code: 'SBX_UNAUTHENTICATED',
  });
});
