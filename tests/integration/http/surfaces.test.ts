import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CreateSandboxRequest } from '../../../src/contract/sandboxes/sandbox.ts';
import { createSandbox } from '../../../src/control/sandboxes/create-sandbox.ts';
import { localCaller } from '../../../src/http/keys/caller-for.ts';
import { TestServer } from '../../support/test-server.ts';
import { MEMORY_PROFILE } from './fixture.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.close());

describe('POST /v1/profiles?validate=true', () => {
  const check = (json: unknown) => server.call('POST', '/v1/profiles?validate=true', { json });
  const mine = { ...MEMORY_PROFILE, id: 'profile.stub-mine' };

  test('a validated profile reports the effect of a push, and is not stored', async () => {
    const { status, json } = await check(mine);
    expect(status).toBe(200);
    expect(json).toMatchObject({ valid: true, published: false, available: true, unavailable_reason: null });
    expect(json.profile).toMatchObject({ id: mine.id, persistence: 'ephemeral' });
    expect((await server.call('GET', `/v1/profiles/${mine.id}`)).status).toBe(404);
    const events = await server.call('GET', '/v1/events?type=profile.pushed&limit=100');
    expect(events.text).not.toContain(mine.id);
  });

  test('a validated profile reports a published version, a clash, and a missing backend', async () => {
    expect((await check(MEMORY_PROFILE)).json).toMatchObject({ published: true });
    const other = await check({ ...MEMORY_PROFILE, ttl: { default: '2h', max: '2h' } });
    expect(other.json).toMatchObject({ status: 409, code: 'SBX_PROFILE_IMMUTABLE', field: 'version' });
    const nowhere = await check({ ...mine, extension: 'ext.e2b' });
    expect(nowhere.json).toMatchObject({ valid: true, available: false });
    expect(nowhere.json.unavailable_reason).toContain('ext.e2b');
  });

  test('a validated profile names every fault', async () => {
    const { json } = await check({ ...mine, isolation: { level: 'contaner' }, tll: '1h' });
    expect(json).toMatchObject({ status: 422, code: 'SBX_PROFILE_INVALID' });
    expect(json.issues).toEqual([
      expect.objectContaining({ field: 'isolation.level', remedy: expect.stringContaining('container') }),
      expect.objectContaining({ field: 'tll', remedy: expect.stringContaining('ttl') }),
    ]);
  });
});

describe('GET /docs', () => {
  test('GET /docs returns a page that needs nothing from elsewhere, and may run nothing else', async () => {
    const { status, headers, text } = await server.call('GET', '/docs');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    const policy = String(headers['content-security-policy']);
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(policy).not.toContain('unsafe');
    for (const [, kind, content = ''] of text.matchAll(/<(style|script)>([\s\S]*?)<\/\1>/g)) {
      const digest = createHash('sha256').update(content).digest('base64');
      expect(policy).toContain(`${kind}-src 'sha256-${digest}'`);
    }
    expect(text).not.toMatch(/\s(?:src|style|on\w+)=|<link|@import|url\(/i);
    expect([...text.matchAll(/href="([^"]*)"/g)].every(([, target]) => target?.startsWith('#'))).toBe(true);
    const { json } = await server.call('GET', '/v1/openapi.json');
    expect(Object.keys(json.paths).filter((path) => !text.includes(path))).toEqual([]);
  });
});

describe('GET /v1/events', () => {
  test('GET /v1/events is read newest first, page by page', async () => {
    const all = await server.call('GET', '/v1/events?limit=1000');
    const seqs = (json: { items: { data: { seq: number } }[] }) => json.items.map(({ data }) => data.seq);
    const first = await server.call('GET', '/v1/events?order=desc&limit=1');
    expect(seqs(first.json)).toEqual(seqs(all.json).slice(-1));
    const rest = await server.call(
      'GET',
      `/v1/events?order=desc&limit=1000&cursor=${first.json.next_cursor}`,
    );
    expect([...seqs(first.json), ...seqs(rest.json)]).toEqual(seqs(all.json).reverse());
  });
});

describe('a workspace that is deleted', () => {
  test('a deleted workspace gets no sandbox any more, also from a caller admitted before', async () => {
    const { control } = server.running;
    await server.expect(201, 'POST', '/v1/workspaces', {
      json: { workspace_id: 'w-gone', org_id: 'default', name: 'Gone' },
    });
    const headers = { 'sandboxer-workspace': 'w-gone' };
    await server.expect(201, 'POST', '/v1/profiles', { json: MEMORY_PROFILE, headers });
    await server.expect(204, 'DELETE', '/v1/workspaces/w-gone');
    const admitted = createSandbox(control, localCaller('w-gone', 'default'), {
      request: CreateSandboxRequest.parse({ profile: MEMORY_PROFILE.id }),
      wait: false,
      timeoutMs: 0,
    });
    await expect(admitted).rejects.toMatchObject({ code: 'SBX_NOT_FOUND' });
  });
});
