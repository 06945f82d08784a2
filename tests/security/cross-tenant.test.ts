/**
 * Two workspaces, each with everything there is. Whoever has a key of one learns nothing about the other and changes
 * nothing in it, by any route of the OpenAPI document: what exists there answers like what never existed.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KeyScope } from '../../src/contract/tenancy/tenancy.ts';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { sampleProviderKey } from '../../src/store/suite/sample-records.ts';
import { archiveOf } from '../../src/testing/conformance/tar-archive.ts';
import type { Answer, CallOptions, Fixture } from '../integration/http/fixture.ts';
import { MEMORY_PROFILE, responseTo, send, startFixture } from '../integration/http/fixture.ts';
import type { CountingStore } from '../support/counting-store.ts';
import { countingStore } from '../support/counting-store.ts';
import { until } from '../support/test-server.ts';
import type { OpenApi, Operation } from './open-api-operations.ts';
import { addressOf, openWebSocket, readOperations } from './open-api-operations.ts';

/** What one workspace has. */
interface World {
  readonly workspaceId: string;
  readonly keys: ReadonlyMap<string, string>;
  readonly ids: Readonly<Record<string, string>>;
}

const SECRETIVE = KeyScope.options.filter((scope) => scope !== 'server');
const ROLES: Readonly<Record<string, readonly [string, readonly string[]]>> = {
  administrator: ['adm', SECRETIVE],
  agent: ['agt', ['read', 'sandboxes']],
  ...Object.fromEntries(SECRETIVE.map((scope) => [`only ${scope}`, ['agt', [scope]]])),
};

/** Whatever a client may know of the other workspace, and an id of the same form that never was. */
const NAMES = {
  id: 'alpha-box',
  ghost: 'omega-box',
  profile: 'profile.stub-alpha',
  ghostProfile: 'profile.stub-alphq',
};
const GHOSTS: Readonly<Record<string, (real: string) => string>> = {
  id: () => NAMES.ghost,
  uid: (real) => scrambled(real),
  snapshot_id: (real) => scrambled(real),
  upload_id: (real) => scrambled(real),
  key_id: (real) => scrambled(real),
  webhook_id: (real) => scrambled(real),
  budget_id: (real) => scrambled(real),
  provider_key_id: (real) => scrambled(real),
  image: (real) => scrambled(real),
  volume: (real) => scrambled(real),
  profile: () => NAMES.ghostProfile,
  org_id: () => 'omega-org',
  workspace_id: () => 'omega',
};
/** The same in every workspace, or meaningless without what stands before it in the path. */
const COMMON = new Set(['host', 'extension', 'process_id', 'port', 'seq', 'sink_id']);
/** Background work goes on beside the requests. */
const BACKGROUND =
  /^(?:outbox|parked|delivered|redelivered|key-used|audit|next-due|resume|prune|tick|expire|idle|due|health|judge-webhook|reconcile|sweep|fund|next-funding)/;

function scrambled(id: string): string {
  const [prefix] = id.split('_');
  const length = id.length - (prefix as string).length - 1;
  return `${prefix}_${randomBytes(32).toString('hex').slice(0, length)}`;
}

let f: Fixture;
let counting: CountingStore;
let directory: string;
let operations: readonly Operation[];
let a: World;
let b: World;

async function call(
  key: string | undefined,
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Pick<Answer, 'status' | 'headers' | 'text' | 'json'>> {
  const authorization: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const headers = { ...authorization, ...options.headers };
  const response = await responseTo(send(f.target, method, path, { ...options, headers }));
  let text = '';
  for await (const part of response.setEncoding('utf8')) text += part;
  const isJson = text !== '' && /json\b/.test(String(response.headers['content-type']));
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text,
    json: isJson ? JSON.parse(text) : null,
  };
}

async function must(status: number, answer: ReturnType<typeof call>) {
  const got = await answer;
  if (got.status !== status) throw new Error(`expected ${status}, got ${got.status}: ${got.text}`);
  return got.json;
}

async function populate(workspaceId: string): Promise<World> {
  const orgId = `${workspaceId}-org`;
  await must(201, call(undefined, 'POST', '/v1/orgs', { json: { org_id: orgId } }));
  await must(
    201,
    call(undefined, 'POST', '/v1/workspaces', { json: { workspace_id: workspaceId, org_id: orgId } }),
  );
  const keys = new Map<string, string>();
  for (const [role, [actor, scopes]] of Object.entries(ROLES)) {
    const json = { name: `${role} of ${workspaceId}`, workspace_id: workspaceId, actor, scopes };
    keys.set(role, (await must(201, call(undefined, 'POST', '/v1/keys', { json }))).secret);
  }
  const key = keys.get('administrator') as string;
  const { key_id } = await must(200, call(key, 'GET', '/v1/whoami'));
  await must(
    200,
    call(key, 'POST', '/v1/credits/grants', {
      json: { amount_micro_usd: 1000, reference: `${workspaceId}-grant` },
    }),
  );
  const profile = `profile.stub-${workspaceId}`;
  await must(201, call(key, 'POST', '/v1/profiles', { json: { ...MEMORY_PROFILE, id: profile } }));
  const { webhook_id } = await must(
    201,
    call(key, 'POST', '/v1/webhooks', { json: { url: `https://${workspaceId}.invalid/hook` } }),
  );
  const budget = { scope: 'profile', period: 'day', limit_micro_usd: 1_000_000 };
  const { budget_id } = await must(201, call(key, 'POST', '/v1/budgets', { json: budget }));
  const provider_key_id = `pky_${randomBytes(10).toString('hex')}`;
  await counting.store.transaction('populate', (tx) =>
    tx.providerKeys.insert(sampleProviderKey(provider_key_id, { workspaceId })),
  );
  const consumer = { harness: `${workspaceId}-harness`, session_id: `${workspaceId}-session` };
  const json = { id: `${workspaceId}-box`, profile, labels: { of: workspaceId }, consumer };
  const headers = { 'idempotency-key': 'the-same-everywhere' };
  const { uid, sandbox_id: id } = await must(201, call(key, 'POST', '/v1/sandboxes', { json, headers }));
  await must(
    200,
    call(key, 'PUT', `/v1/sandboxes/${id}/files?path=a.txt`, { body: `secret of ${workspaceId}` }),
  );
  const { snapshot_id } = await must(
    201,
    call(key, 'POST', `/v1/sandboxes/${id}/snapshots`, { json: { name: `${workspaceId}-snapshot` } }),
  );
  const archive = archiveOf([{ name: 'a.txt', content: `secret of ${workspaceId}` }]);
  const { upload_id } = await must(201, call(key, 'POST', '/v1/uploads', { body: archive }));
  const deliveries = async () =>
    (await must(200, call(key, 'GET', `/v1/webhooks/${webhook_id}/deliveries`))).items;
  await until('a delivery is parked', async () => (await deliveries()).length > 0);
  await must(200, call(key, 'POST', `/v1/webhooks/${webhook_id}/disable`));
  const [{ seq }] = await deliveries();
  const { image_id: image } = await must(
    201,
    call(key, 'POST', `/v1/images?name=${workspaceId}-image&extension=ext.memory`, { body: 'an image' }),
  );
  const { volume_id: volume } = await must(
    201,
    call(key, 'POST', '/v1/volumes', { json: { name: `${workspaceId}-volume`, extension: 'ext.memory' } }),
  );
  const ids = {
    id,
    image,
    volume,
    uid,
    snapshot_id,
    upload_id,
    key_id,
    webhook_id,
    budget_id,
    provider_key_id,
    profile,
    process_id: 'p1',
    port: '80',
    seq: String(seq),
  };
  return {
    workspaceId,
    keys,
    ids: { ...ids, org_id: orgId, workspace_id: workspaceId, extension: 'ext.memory', sink_id: 'state-hub' },
  };
}

/** Everything in the workspace, except when its keys were last used. */
async function contentOf(workspaceId: string): Promise<unknown> {
  return counting.store.read('content', async (tx) => ({
    sandboxes: (await tx.sandboxes.list({ workspaceId, limit: 100 })).items,
    snapshots: (await tx.snapshots.list({ workspaceId, limit: 100 })).items,
    uploads: (await tx.uploads.list({ workspaceId, limit: 100 })).items,
    events: await tx.events.list({ workspaceId, after: 0, limit: 10_000 }),
    keys: (await tx.tenancy.keys(workspaceId)).map((key) => ({ ...key, lastUsedAt: null })),
    images: await tx.images.list(workspaceId),
    volumes: await tx.volumes.list(workspaceId),
    webhooks: await tx.webhooks.list(workspaceId),
    providerKeys: (await tx.providerKeys.list()).filter((key) => key.workspaceId === workspaceId),
    parked: await tx.outbox.parked(`webhook:${a.ids.webhook_id}`),
    profiles: await tx.profiles.list(workspaceId),
    transfers: await tx.ledger.transfers({ workspaceId, after: 0, limit: 1000 }),
    audit: await tx.audit.list({ workspaceId, limit: 1000 }),
    workspace: await tx.tenancy.workspace(workspaceId),
    org: await tx.tenancy.org(`${workspaceId}-org`),
  }));
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandboxer-tenants-'));
  counting = countingStore(await SqliteStore.open({ path: join(directory, 'tenants.db') }));
  f = await startFixture({ store: counting.store, limits: { waitMs: 2_000, heartbeatMs: 600_000 } });
  operations = readOperations((await f.call('GET', '/v1/openapi.json')).json as OpenApi);
  a = await populate('alpha');
  b = await populate('beta');
  // The first use of a key is noted; from then on a minute passes without a write.
  for (const key of [...a.keys.values(), ...b.keys.values()]) await call(key, 'GET', '/v1/whoami');
  await sleep(300);
});
afterAll(async () => {
  await f.close();
  await rm(directory, { recursive: true, force: true });
});

interface Seen {
  readonly status: number;
  readonly headers: readonly string[];
  readonly text: string;
}

const PASSING = new Set(['date', 'content-length', 'x-request-id', 'keep-alive', 'connection']);

/** The answer without what is different in every answer, and with the named ids made the same. */
async function look(key: string, operation: Operation, ids: Readonly<Record<string, string>>): Promise<Seen> {
  const path = addressOf(operation, ids);
  const answer = operation.webSocket
    ? await openWebSocket(f.target, key, path)
    : await call(key, operation.method, path, operation.options);
  let text = answer.text.replaceAll(/"request_id":"[^"]*"/g, '"request_id":""');
  for (const [name, id] of Object.entries(ids)) if (GHOSTS[name]) text = text.replaceAll(id, `<${name}>`);
  const headers = Object.keys(answer.headers).filter((name) => !PASSING.has(name));
  return { status: answer.status, headers: headers.toSorted(), text };
}

/** The way through the store that a request takes. */
async function wayOf(
  key: string,
  operation: Operation,
  ids: Readonly<Record<string, string>>,
): Promise<string[]> {
  counting.calls.length = 0;
  await look(key, operation, ids);
  return counting.calls.filter((line) => !BACKGROUND.test(line));
}

function ghostsOf(real: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(real).map(([name, id]) => [name, GHOSTS[name]?.(id) ?? id]));
}

/** Routes whose path names something that belongs to a workspace. */
function addressed(): readonly Operation[] {
  return operations.filter(({ parameters }) =>
    parameters.some(({ name, in: place }) => place === 'path' && GHOSTS[name]),
  );
}

describe('another workspace', () => {
  it('every path parameter has a meaning for the cross-tenant test', () => {
    expect(operations.length).toBeGreaterThan(60);
    const names = operations.flatMap(({ parameters }) =>
      parameters.filter(({ in: place }) => place === 'path').map(({ name }) => name),
    );
    expect([...new Set(names)].filter((name) => !GHOSTS[name] && !COMMON.has(name))).toEqual([]);
    expect(addressed().length).toBeGreaterThan(40);
  });

  // First of all: later, the audit log of the other side has what it tried.
  it('another workspace is in no list', async () => {
    const marks = [...Object.entries(a.ids)].filter(([name]) => GHOSTS[name]).map(([, id]) => id);
    const lists = operations.filter(({ method, parameters, webSocket: upgrade }) => {
      const inPath = parameters.some(({ in: place, name }) => place === 'path' && GHOSTS[name]);
      return method === 'GET' && !inPath && !upgrade;
    });
    expect(lists.length).toBeGreaterThan(10);
    for (const [role, key] of b.keys) {
      for (const operation of lists) {
        const { text } = await call(key, 'GET', addressOf(operation, a.ids));
        const found = [
          ...marks,
          'alpha-harness',
          'alpha-session',
          'alpha-snapshot',
          'alpha-grant',
          'alpha.invalid',
        ].filter((mark) => text.includes(mark));
        expect([role, operation.operationId, found]).toEqual([role, operation.operationId, []]);
      }
    }
  });

  it('an administrator of the other workspace reaches every one of its objects', async () => {
    const key = a.keys.get('administrator') as string;
    const reads = addressed().filter(({ method, webSocket: upgrade }) => method === 'GET' && !upgrade);
    for (const operation of reads.filter(
      ({ operationId }) => !/watch|wait|output|events/i.test(operationId),
    )) {
      const { status } = await look(key, operation, a.ids);
      const isServers = /^\/v1\/(?:orgs|workspaces)/.test(operation.path);
      // A file is not a directory; that, too, is an answer about something that is there.
      const expected = isServers ? [403] : [200, 422];
      expect([operation.operationId, status]).toEqual([operation.operationId, expect.toBeOneOf(expected)]);
    }
  });

  it('another workspace gets from every route the answer of an object that never existed', async () => {
    const before = await contentOf('alpha');
    const ghosts = ghostsOf(a.ids);
    let requests = 0;
    for (const [role, key] of b.keys) {
      for (const operation of addressed()) {
        for (const name of operation.path.includes('{id}') ? ['id', 'uid'] : ['id']) {
          const real = { ...a.ids, id: a.ids[name] as string };
          const ghost = { ...ghosts, id: ghosts[name] as string };
          const seen = await look(key, operation, real);
          const what = `${role}: ${operation.operationId} by ${name}`;
          expect([what, seen.status], seen.text).toEqual([what, expect.toBeOneOf([403, 404])]);
          expect({ what, ...(await look(key, operation, ghost)) }).toEqual({ what, ...seen });
          requests += 2;
        }
      }
    }
    expect(requests).toBeGreaterThan(1_000);
    expect(await contentOf('alpha')).toEqual(before);
  });

  it('another workspace takes the same way through the store whether an object exists or not', async () => {
    const ghosts = ghostsOf(a.ids);
    const key = b.keys.get('administrator') as string;
    for (const operation of addressed()) {
      let ways: { real: string[]; ghost: string[] } = { real: ['never'], ghost: [] };
      for (let tries = 0; tries < 5 && ways.real.join() !== ways.ghost.join(); tries++) {
        ways = { real: await wayOf(key, operation, a.ids), ghost: await wayOf(key, operation, ghosts) };
      }
      expect({ operation: operation.operationId, way: ways.real }).toEqual({
        operation: operation.operationId,
        way: ways.ghost,
      });
    }
  });

  it('another workspace cannot be named in a query, a body or a header', async () => {
    const key = b.keys.get('administrator') as string;
    const before = await contentOf('alpha');
    const both = async (
      of: (id: string) => ReturnType<typeof call>,
      real: string,
      ghost: string,
      status: number,
    ) => {
      const [seen, never] = [await of(real), await of(ghost)];
      expect(seen.status).toBe(status);
      const plain = (answer: { readonly json: Record<string, unknown> }, id: string) => {
        const { request_id: _, ...rest } = answer.json;
        return JSON.stringify(rest).replaceAll(id, '<id>');
      };
      expect(plain(seen, real)).toBe(plain(never, ghost));
    };
    const naming = operations.flatMap((operation) =>
      operation.parameters
        .filter(({ in: place, name }) => place === 'query' && /^sandbox(?:_id)?$/.test(name))
        .map(({ name }) => ({ path: operation.path, name })),
    );
    expect(naming.length).toBeGreaterThanOrEqual(2);
    for (const { path, name } of naming) {
      await both((id) => call(key, 'GET', `${path}?${name}=${id}`), NAMES.id, NAMES.ghost, 404);
      await both(
        (id) => call(key, 'GET', `${path}?${name}=${id}`),
        a.ids.uid as string,
        scrambled(a.ids.uid as string),
        404,
      );
    }
    for (const path of ['/v1/sandboxes', '/v1/routes/resolve']) {
      await both(
        (profile) => call(key, 'POST', path, { json: { profile } }),
        NAMES.profile,
        NAMES.ghostProfile,
        404,
      );
    }
    await both(
      (workspace_id) => call(key, 'POST', '/v1/keys', { json: { name: 'x', workspace_id } }),
      'alpha',
      'omega',
      403,
    );
    await both(
      (workspace) => call(key, 'GET', '/v1/sandboxes', { headers: { 'sandboxer-workspace': workspace } }),
      'alpha',
      'omega',
      403,
    );

    // Names are each workspace's own: the same one is free here, and so is the same idempotency key.
    const json = { id: NAMES.id, profile: b.ids.profile };
    const mine = await must(201, call(key, 'POST', '/v1/sandboxes', { json }));
    expect(mine).toMatchObject({ workspace_id: 'beta', sandbox_id: NAMES.id });
    expect((await must(200, call(key, 'GET', `/v1/sandboxes/${NAMES.id}`))).uid).toBe(mine.uid);
    const headers = { 'idempotency-key': 'the-same-everywhere' };
    const replay = await call(key, 'POST', '/v1/sandboxes', {
      json: { profile: b.ids.profile, id: 'another' },
      headers,
    });
    expect(replay.json).toMatchObject({ code: 'SBX_IDEMPOTENCY_MISMATCH' });
    expect(await contentOf('alpha')).toEqual(before);
  });
});
