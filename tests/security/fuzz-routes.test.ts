/**
 * Every route, fed with what nobody in their right mind sends. Whatever comes: an answer in time, never a 5xx, a typed
 * problem for every refusal, and a refusal changes nothing. `FUZZ_SEED` repeats a run.
 */
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Problem } from '../../src/contract/errors/errors.ts';
import type { Store } from '../../src/core/ports/store/store.ts';
import { openApiDocument } from '../../src/http/route/openapi.ts';
import type { RouteDefinition } from '../../src/http/route/route.ts';
import { ROUTE_TABLE } from '../../src/http/server/route-table.ts';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { archiveOf } from '../../src/testing/conformance/tar-archive.ts';
import type { Fixture } from '../integration/http/fixture.ts';
import { MEMORY_PROFILE, startFixture } from '../integration/http/fixture.ts';
import type { Schema } from './fuzz-inputs.ts';
import {
  CONTENT_TYPES,
  HEADERS,
  HOSTILE_BODIES,
  HOSTILE_VALUES,
  QUERY_VALUES,
  SEGMENTS,
  sample,
  seeded,
} from './fuzz-inputs.ts';

const SEED = Number(process.env.FUZZ_SEED ?? 20_260_131);
const PER_ROUTE = 55;
const ANSWER_MS = 60_000;
const LEAST_REQUESTS = 3_000;

interface Shot {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

interface Hit {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

let f: Fixture;
let directory: string;
const agent = new Agent({ keepAlive: true, maxSockets: 4 });
const random = seeded(SEED);
const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
const document = JSON.parse(JSON.stringify(openApiDocument(ROUTE_TABLE, '0'))) as Record<string, unknown>;
const resolve = (ref: string) =>
  ref
    .slice(2)
    .split('/')
    .reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], document) as Schema;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandboxer-fuzz-'));
  const store = await SqliteStore.open({ path: join(directory, 'fuzz.db') });
  f = await startFixture({
    store,
    limits: { waitMs: 100, jsonBytes: 64_000, largeJsonBytes: 64_000, execBytes: 64_000, bodyMs: 2_000 },
  });
});
afterAll(async () => {
  agent.destroy();
  await f.close();
  await rm(directory, { recursive: true, force: true });
});

/** Everything that a refused request must leave alone. When a sandbox was last used is no such thing. */
async function digest(store: Store): Promise<string> {
  const state = await store.read('digest', async (tx) => {
    const sandboxes = [];
    let cursor: string | null = null;
    do {
      const page = await tx.sandboxes.list({ workspaceId: null, limit: 500, cursor });
      for (const row of page.items) {
        const { lastActivityAt: _, idleDeadlineAt: __, version: ___, ...rest } = row;
        sandboxes.push(rest);
      }
      cursor = page.nextCursor;
    } while (cursor !== null);
    return {
      sandboxes,
      snapshots: (await tx.snapshots.list({ workspaceId: null, limit: 500 })).items,
      lastSeq: await tx.events.lastSeq(),
      transfers: (await tx.ledger.transfers({ workspaceId: null, after: 0, limit: 100_000 })).length,
      keys: await tx.tenancy.keys(null),
      profiles: await tx.profiles.list(null),
    };
  });
  return createHash('sha256').update(JSON.stringify(state)).digest('hex');
}

/** What is under way after an accepted request ends before the next one is judged. */
async function settled(): Promise<string> {
  for (let last = await digest(f.store); ; ) {
    await new Promise((next) => setImmediate(next));
    const now = await digest(f.store);
    if (now === last && f.control.driver.inFlight === 0) return now;
    last = now;
  }
}

function fire(shot: Shot): Promise<Hit> {
  return new Promise((done, fail) => {
    const late = setTimeout(() => fail(new Error('no answer in time')), ANSWER_MS);
    const outgoing = request(
      { ...f.target, agent, method: shot.method, path: shot.path, headers: shot.headers },
      (response) => {
        const type = String(response.headers['content-type'] ?? '');
        const status = response.statusCode ?? 0;
        const finish = (text: string) => {
          clearTimeout(late);
          done({ status, type, text });
        };
        if (/event-stream|ndjson/.test(type)) {
          finish('');
          response.destroy();
          return;
        }
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        response.on('end', () => finish(text));
        response.on('error', () => finish(text));
      },
    );
    outgoing.on('upgrade', (_response, socket) => {
      socket.destroy();
      clearTimeout(late);
      done({ status: 101, type: '', text: '' });
    });
    outgoing.on('error', (error) => {
      clearTimeout(late);
      fail(error);
    });
    outgoing.end(shot.body);
  });
}

interface Resources {
  readonly params: ReadonlyMap<string, string>;
  readonly fields: ReadonlyMap<string, unknown>;
}

/** A sandbox in use, a snapshot, a key: made anew when the last request was let through and took one away. */
async function prepare(last: Resources | null): Promise<Resources> {
  const alive =
    last &&
    (await f.call('GET', `/v1/sandboxes/${last.params.get('id')}`)).json?.state === 'active' &&
    (await f.call('GET', `/v1/snapshots/${last.params.get('snapshot_id')}`)).status === 200;
  if (alive) return last;
  const id = await f.create();
  await f.call('PUT', `/v1/sandboxes/${id}/files?path=a.txt`, { body: 'content' });
  const { snapshot_id } = (await f.call('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} })).json;
  const archive = archiveOf([{ name: 'a.txt', content: 'content' }]);
  const { upload_id } = (await f.call('POST', '/v1/uploads', { body: archive })).json;
  const { key_id } = (await f.call('POST', '/v1/keys', { json: { name: 'k' } })).json;
  return {
    params: new Map([
      ['id', id],
      ['snapshot_id', snapshot_id],
      ['upload_id', upload_id],
      ['key_id', key_id],
      ['process_id', 'p1'],
      ['port', '80'],
      ['profile', MEMORY_PROFILE.id],
      ['extension', 'ext.memory'],
    ]),
    fields: new Map<string, unknown>([
      ['command', ['true']],
      ['path', 'a.txt'],
      ['from', 'a.txt'],
      ['to', 'b.txt'],
      ['ttl', '10m'],
      ['id', 'profile.stub-fuzz'],
      ['version', '1.0.0'],
    ]),
  };
}

function addressOf(definition: RouteDefinition, resources: Resources, spoilt: string | null): string {
  return definition.url.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    name === spoilt ? pick(SEGMENTS) : encodeURIComponent(resources.params.get(name) ?? 'x'),
  );
}

function queryNames(definition: RouteDefinition): string[] {
  return Object.keys(definition.query?.shape ?? {});
}

/** Just enough of a query for the route to look at the rest. */
function plainQuery(definition: RouteDefinition): string {
  return queryNames(definition).includes('path') ? '?path=a.txt' : '';
}

function spoiltQuery(definition: RouteDefinition): string {
  const names = queryNames(definition);
  const name =
    random() < 0.25 || names.length === 0
      ? pick(['unknown', '__proto__', 'a%5Bb%5D', '%00', ''])
      : pick(names);
  const once = `${name}=${pick(QUERY_VALUES)}`;
  const twice = random() < 0.2 ? `&${name}=${pick(QUERY_VALUES)}` : '';
  const base = plainQuery(definition);
  return `${base}${base === '' ? '?' : '&'}${once}${twice}`;
}

function schemaOf(definition: RouteDefinition): Schema {
  const { requestBody } =
    (
      document.paths as Record<
        string,
        Record<string, { requestBody?: { content?: Record<string, { schema?: Schema }> } }>
      >
    )[definition.url]?.[definition.method.toLowerCase()] ?? {};
  return requestBody?.content?.['application/json']?.schema ?? {};
}

function fieldsOf(schema: Schema): string[] {
  const at = schema.$ref === undefined ? schema : resolve(schema.$ref);
  return Object.keys(at.properties ?? {});
}

/** The plain body with one field replaced, left out, doubled or added; as text, for JSON.stringify would repair it. */
function spoiltBody(definition: RouteDefinition, resources: Resources): string | Buffer {
  if (random() < 0.3) return pick(HOSTILE_BODIES);
  const schema = schemaOf(definition);
  const plain = sample(schema, resolve, resources.fields) as Record<string, unknown>;
  const members = Object.entries(plain ?? {}).map(([key, value]) => [
    JSON.stringify(key),
    JSON.stringify(value),
  ]);
  const field = JSON.stringify(pick([...fieldsOf(schema), 'unknown', '__proto__', 'constructor']));
  const others = members.filter(([key]) => key !== field);
  const turn = random();
  if (turn < 0.15) return `{${others.map((pair) => pair.join(':')).join(',')}}`;
  const value = pick(HOSTILE_VALUES);
  const twice = turn < 0.3 ? [[field, pick(HOSTILE_VALUES)]] : [];
  return `{${[...others, [field, value], ...twice].map((pair) => pair.join(':')).join(',')}}`;
}

function shotAt(definition: RouteDefinition, resources: Resources): Shot {
  const params = [...definition.url.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string);
  const ways = [
    'query',
    'headers',
    ...(params.length > 0 ? ['path'] : []),
    ...(definition.body ? ['body', 'body', 'body', 'type'] : []),
  ];
  const way = pick(ways);
  const path = addressOf(definition, resources, way === 'path' ? pick(params) : null);
  const query = way === 'query' ? spoiltQuery(definition) : plainQuery(definition);
  const body =
    definition.body?.kind === 'stream'
      ? pick(HOSTILE_BODIES)
      : definition.body &&
        (way === 'body'
          ? spoiltBody(definition, resources)
          : JSON.stringify(sample(schemaOf(definition), resolve, resources.fields)));
  const json =
    definition.body && definition.body.kind !== 'stream' ? { 'content-type': 'application/json' } : {};
  const headers = {
    ...json,
    ...(way === 'type' ? { 'content-type': pick(CONTENT_TYPES) } : {}),
    ...(way === 'headers' ? pick(HEADERS) : {}),
  };
  return {
    method: definition.method,
    path: `${path}${query}`,
    headers,
    ...(body === undefined ? {} : { body }),
  };
}

test(`every route survives hostile requests (seed ${SEED})`, { timeout: 900_000 }, async () => {
  console.log(`fuzz seed ${SEED}`);
  let requests = 0;
  const statuses = new Map<number, number>();
  let resources = await prepare(null);
  let before = await settled();
  for (const definition of ROUTE_TABLE) {
    for (let n = 0; n < PER_ROUTE; n += 1) {
      const shot = shotAt(definition, resources);
      const told = `${shot.method} ${shot.path.slice(0, 300)} ${JSON.stringify(shot.headers)} ${String(shot.body ?? '').slice(0, 300)}`;
      requests += 1;
      const hit = await fire(shot).catch((error: Error) => {
        throw new Error(`${error.message}: ${told}`);
      });
      statuses.set(hit.status, (statuses.get(hit.status) ?? 0) + 1);
      expect(hit.status, `${told} → ${hit.text.slice(0, 500)}`).toBeLessThan(500);
      if (hit.status >= 400) {
        if (shot.method !== 'HEAD') {
          const problem = Problem.parse(JSON.parse(hit.text));
          expect(problem.status, told).toBe(hit.status);
          expect(hit.type, told).toBe('application/problem+json');
          expect(hit.text, told).not.toMatch(/node_modules|\.ts:\d+|at async/);
        }
        expect(await digest(f.store), `a refused request changed something: ${told}`).toBe(before);
      } else {
        resources = await prepare(resources);
        before = await settled();
      }
    }
  }
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  expect(requests).toBeGreaterThanOrEqual(LEAST_REQUESTS);
  console.log(
    `${requests} requests: ${[...statuses]
      .sort()
      .map(([status, count]) => `${status}×${count}`)
      .join(' ')}`,
  );
});

const POST_GRANT =
  'POST /v1/credits/grants HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 22\r\n\r\n{"amount_micro_usd":5}';

const GARBAGE: Readonly<Record<string, string | Buffer>> = {
  'nothing but line ends': '\r\n\r\n\r\n\r\n',
  'no request line': 'hello\r\n\r\n',
  'HTTP/0.9': 'GET /healthz\r\n\r\n',
  'HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'TLS hello': Buffer.from('16030100c8010000c40303', 'hex'),
  'random bytes': createHash('sha512').update(String(SEED)).digest(),
  'NUL bytes': Buffer.alloc(4096),
  'a version of its own': 'GET / HTTP/9.9\r\nhost: x\r\n\r\n',
  'a method of its own': 'STEAL / HTTP/1.1\r\nhost: x\r\n\r\n',
  'no host': 'GET /healthz HTTP/1.1\r\n\r\n',
  'a header without colon': 'GET / HTTP/1.1\r\nhost: x\r\nnonsense\r\n\r\n',
  'space before the colon': 'GET / HTTP/1.1\r\nhost : x\r\n\r\n',
  'folded header': 'GET / HTTP/1.1\r\nhost: x\r\nx-a: 1\r\n 2\r\n\r\n',
  'NUL in a header': 'GET / HTTP/1.1\r\nhost: x\r\nx-a: a\0b\r\n\r\n',
  'bare line feeds': 'GET / HTTP/1.1\nhost: x\n\n',
  'a huge header': `GET / HTTP/1.1\r\nhost: x\r\nx-a: ${'a'.repeat(100_000)}\r\n\r\n`,
  'many headers': `GET / HTTP/1.1\r\nhost: x\r\n${Array.from({ length: 5000 }, (_, n) => `x-${n}: ${n}`).join('\r\n')}\r\n\r\n`,
  'a huge line': `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
  'raw unicode in the path': 'GET /v1/sandboxes/\u{1f4a9} HTTP/1.1\r\nhost: x\r\n\r\n',
  'length and chunks': `POST /v1/routes/resolve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${POST_GRANT}`,
  'chunks and length': `POST /v1/routes/resolve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n${POST_GRANT}`,
  'two lengths': `POST /v1/routes/resolve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 0\r\ncontent-length: 200\r\n\r\n${POST_GRANT}`,
  'a list of lengths': `POST /v1/routes/resolve HTTP/1.1\r\nhost: x\r\ncontent-length: 0, 0\r\n\r\n${POST_GRANT}`,
  'a negative length': `POST /v1/routes/resolve HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n${POST_GRANT}`,
  'a signed length': `POST /v1/routes/resolve HTTP/1.1\r\nhost: x\r\ncontent-length: +0\r\n\r\n${POST_GRANT}`,
  'chunked twice': `POST /v1/routes/resolve HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n${POST_GRANT}`,
  'chunked, then not': `POST /v1/routes/resolve HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n${POST_GRANT}`,
  'nearly chunked': `POST /v1/routes/resolve HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n${POST_GRANT}`,
  'a chunk too large':
    'POST /v1/routes/resolve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n{}',
  'a chunk that is none':
    'POST /v1/routes/resolve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}',
  'a chunk with a bare line feed':
    'POST /v1/routes/resolve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n',
  connect: 'CONNECT evil.example:443 HTTP/1.1\r\nhost: x\r\n\r\n',
  'a broken WebSocket handshake':
    'GET /v1/sandboxes/x/exec HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 99\r\n\r\n',
  'an upgrade to nowhere':
    'GET /v1/nowhere/%zz HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
};

function garbage(bytes: string | Buffer): Promise<string> {
  return new Promise((done, fail) => {
    const socket = connect(f.target.socketPath as string);
    let text = '';
    const quiet = () => {
      socket.destroy();
      done(text);
    };
    // Either an answer comes, or the server waits for more and is left.
    let timer = setTimeout(quiet, 1500);
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      clearTimeout(timer);
      timer = setTimeout(quiet, 200);
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(timer);
      done(text);
    });
    setTimeout(() => fail(new Error('it hangs')), ANSWER_MS).unref();
    socket.write(bytes);
  });
}

test.each(Object.entries(GARBAGE))('bytes that are no request are refused: %s', async (_name, bytes) => {
  const before = await settled();
  const text = await garbage(bytes);
  for (const line of text.match(/^HTTP\/1\.1 \d{3}/gm) ?? []) expect(Number(line.slice(9))).toBeLessThan(500);
  expect(text).not.toMatch(/^HTTP\/1\.1 2\d\d/m);
  expect(await digest(f.store)).toBe(before);
  expect((await f.call('GET', '/healthz')).status).toBe(200);
});
