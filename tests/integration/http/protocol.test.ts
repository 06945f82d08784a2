import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Problem } from '../../../src/contract/errors/errors.ts';
import { createHttpServer } from '../../../src/http/server/server.ts';
import type { CallOptions, Fixture } from './fixture.ts';
import { answerTo, MEMORY_PROFILE, send, startFixture } from './fixture.ts';

let f: Fixture;
beforeAll(async () => {
  f = await startFixture({ limits: { jsonBytes: 2000, largeJsonBytes: 2000, bodyMs: 300, headersMs: 500 } });
});
afterAll(() => f.close());

const JSON_TYPE = { 'content-type': 'application/json' };
const refused = async (method: string, path: string, options?: CallOptions) => {
  const answer = await f.call(method, path, options);
  expect(answer.headers['content-type']).toBe('application/problem+json');
  const problem = Problem.parse(answer.json);
  expect(problem.status).toBe(answer.status);
  expect(problem.request_id).toBe(answer.headers['x-request-id']);
  return problem;
};
const create = (body: string, headers: Record<string, string> = JSON_TYPE) =>
  refused('POST', '/v1/sandboxes', { body, headers });

describe('errors', () => {
  test('errors of paths and methods', async () => {
    expect(await refused('GET', '/v1/nothing')).toMatchObject({ status: 404, code: 'SBX_NOT_FOUND' });
    expect(await refused('GET', '/v1/sandboxes/')).toMatchObject({ status: 400, field: 'id' });
    expect(await refused('GET', '/v1/sandboxes/sbx_none')).toMatchObject({ status: 404 });
    expect(await refused('GET', '/v1/sandboxes/%zz')).toMatchObject({ status: 400 });
    expect(await refused('GET', '/v1/sandboxes/a%00b')).toMatchObject({ status: 400, field: 'id' });
    expect(await refused('GET', '/v1/sandboxes/..%2f..')).toMatchObject({ status: 400, field: 'id' });
    expect(await refused('GET', `/v1/sandboxes/${'a'.repeat(300)}`)).toMatchObject({ status: 400 });
    const wrong = await f.call('PATCH', '/v1/sandboxes/x');
    expect(wrong.json).toMatchObject({ status: 405, code: 'SBX_METHOD_NOT_ALLOWED' });
    expect(wrong.headers.allow).toBe('GET, HEAD, DELETE');
  });

  test('errors of queries', async () => {
    const list = (query: string) => refused('GET', `/v1/sandboxes?${query}`);
    expect(await list('unknown=1')).toMatchObject({ status: 400, field: 'unknown' });
    expect(await list('limit=1&limit=2')).toMatchObject({ field: 'limit' });
    expect(await list('limit=0x10')).toMatchObject({ field: 'limit' });
    expect(await list('limit=%zz')).toMatchObject({ status: 400 });
    expect(await list('harness=a%00')).toMatchObject({ status: 400 });
    expect(await list('__proto__=1')).toMatchObject({ status: 400 });
    expect(await list('label=nokey')).toMatchObject({ field: 'label' });
    expect(await list('state=ready,redy')).toMatchObject({
      field: 'state',
      detail: expect.stringContaining('"redy" is not one of requested, provisioning'),
      remedy: 'Did you mean "ready"?',
    });
    expect(await refused('GET', '/v1/credits?x=1')).toMatchObject({ status: 400, field: 'x' });
    expect(await refused('POST', '/v1/sandboxes?timeout=soon')).toMatchObject({ field: 'timeout' });
  });

  test('errors of bodies', async () => {
    expect(await create('{')).toMatchObject({ status: 400, code: 'SBX_INVALID_REQUEST' });
    expect(await create('[]')).toMatchObject({ status: 400 });
    expect(await create('"text"')).toMatchObject({ status: 400 });
    expect(await create('null')).toMatchObject({ status: 400 });
    expect(await create('{"profil":"x"}')).toMatchObject({ field: 'profil' });
    expect(await create('{"inputs":{"__proto__":{"x":1}}}')).toMatchObject({ field: 'inputs.__proto__' });
    expect(await create('{"inputs":{"\\u005f_proto__":1}}')).toMatchObject({ field: 'inputs.__proto__' });
    expect(await create('{"inputs":{"constructor":{"prototype":{}}}}')).toMatchObject({ status: 400 });
    expect(await create('{"labels":{"a":"\\ud800"}}')).toMatchObject({ field: 'labels.a' });
    expect(await create('{"labels":{"a":"\\u0000"}}')).toMatchObject({ field: 'labels.a' });
    expect(await create(`{"inputs":{"a":${'['.repeat(500)}${']'.repeat(500)}}}`)).toMatchObject({
      status: 400,
    });
    expect(await create(`{"labels":{"a":"${'x'.repeat(3000)}"}}`)).toMatchObject({
      status: 413,
      code: 'SBX_PAYLOAD_TOO_LARGE',
    });
    const latin = { body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), headers: JSON_TYPE };
    expect(await refused('POST', '/v1/sandboxes', latin)).toMatchObject({ status: 400 });
  });

  test('errors of media types', async () => {
    expect(await create('{}', { 'content-type': 'text/plain' })).toMatchObject({
      status: 415,
      code: 'SBX_UNSUPPORTED_MEDIA',
    });
    expect(await create('{}', {})).toMatchObject({ status: 415 });
    expect(await create('{}', { 'content-type': ';;;' })).toMatchObject({ status: 415 });
    expect(await create('{}', { 'content-type': 'application/json; charset=latin1' })).toMatchObject({
      status: 415,
    });
    expect(await create('{}', { ...JSON_TYPE, 'content-encoding': 'gzip' })).toMatchObject({ status: 415 });
    const fine = { 'content-type': 'Application/JSON; charset="utf-8"' };
    const body = JSON.stringify({ profile: MEMORY_PROFILE.id });
    expect((await f.call('POST', '/v1/sandboxes', { body, headers: fine })).status).toBe(201);
  });

  test('an error lists all issues, and the first is the field', async () => {
    const problem = await create('{"ttl":"soon","labels":{"-":1},"route":{"only":["local"]}}');
    const fields = (problem.issues as { field: string }[]).map(({ field }) => field);
    expect(fields).toEqual(expect.arrayContaining(['ttl', 'labels.-', 'route.only.0']));
    expect(problem.field).toBe(fields[0]);
  });
});

describe('headers', () => {
  test('request ids are taken over when they are harmless', async () => {
    const id = async (given: string) =>
      (await f.call('GET', '/healthz', { headers: { 'x-request-id': given } })).headers['x-request-id'];
    expect(await id('my-id.1:2_3')).toBe('my-id.1:2_3');
    expect(await id('no spaces')).toMatch(/^req_/);
    expect(await id('x'.repeat(65))).toMatch(/^req_/);
  });

  test('an unknown API version is refused, and ours is in every answer', async () => {
    const version = (value: string) =>
      f.call('GET', '/v1/version', { headers: { 'sandboxer-api-version': value } });
    expect((await version('1')).json).toMatchObject({
      product: 'sand-boxer',
      api_version: 1,
      version: '0.0.0-test',
    });
    const other = await version('2');
    expect(other.json).toMatchObject({ status: 426, code: 'SBX_UPGRADE_REQUIRED' });
    expect(other.headers['sandboxer-api-version']).toBe('1');
    expect((await f.call('GET', '/v1/nothing')).headers['sandboxer-api-version']).toBe('1');
  });

  test('an idempotency key has a form', async () => {
    const headers = { ...JSON_TYPE, 'idempotency-key': 'with space' };
    expect(await create('{}', headers)).toMatchObject({ status: 400, field: 'Idempotency-Key' });
  });
});

test('a request on TCP without a key changes nothing', async () => {
  const app = await createHttpServer(f.options);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as { port: number };
  const target = { host: '127.0.0.1', port };
  const call = (method: string, path: string, options?: CallOptions) =>
    answerTo(send(target, method, path, options));
  try {
    const answer = await call('GET', '/v1/sandboxes');
    expect(answer.json).toMatchObject({ status: 401, code: 'SBX_UNAUTHENTICATED' });
    expect(answer.headers['www-authenticate']).toContain('Bearer');
    for (const path of ['/healthz', '/readyz', '/v1/version', '/v1/openapi.json']) {
      expect((await call('GET', path)).status).toBe(200);
    }
    expect((await call('GET', '/metrics')).status).toBe(401);
    for (const authorization of [
      'Bearer',
      'Bearer x',
      'Basic abc',
      'Bearer sk-12345678',
      `Bearer ${'x'.repeat(600)}`,
    ]) {
      expect((await call('GET', '/v1/sandboxes', { headers: { authorization } })).status).toBe(401);
    }
    const { secret } = (await f.call('POST', '/v1/keys', { json: { name: 'tcp', scopes: ['read'] } })).json;
    const headers = { authorization: `bearer ${secret}` };
    expect((await call('GET', '/v1/sandboxes', { headers })).status).toBe(200);
    expect((await call('GET', '/metrics', { headers })).status).toBe(403);
    expect((await call('GET', '/v1/keys', { headers })).status).toBe(403);
  } finally {
    await app.close();
  }
});

test('metrics have no unbounded labels, and count from the rows', async () => {
  const id = await f.create();
  await f.call('GET', `/v1/sandboxes/${id}`);
  await f.call('GET', '/v1/some/where/strange');
  const { text, headers } = await f.call('GET', '/metrics');
  expect(headers['content-type']).toContain('text/plain');
  expect(text).toMatch(/sandboxer_sandboxes\{state="ready"\} [1-9]/);
  expect(text).toContain('sandboxer_sandboxes{state="failed"} 0');
  expect(text).toMatch(/http_requests_total\{method="GET",route="\/v1\/sandboxes\/\{id\}",status="200"\} \d/);
  expect(text).toContain('route="unmatched",status="404"');
  expect(text).not.toContain(id);
  expect(text).not.toContain('strange');
  expect(text).toMatch(/sandboxer_process_resident_memory_bytes \d/);
  expect(text).toMatch(/sandboxer_driver_in_flight 0/);
  expect(text).toMatch(/sandboxer_events_undelivered \d/);
});

describe('slow clients', () => {
  const raw = (bytes: string) =>
    new Promise<string>((resolve) => {
      const socket = connect(f.target.socketPath as string);
      let text = '';
      socket.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      socket.once('close', () => resolve(text));
      socket.on('error', () => {});
      socket.write(bytes);
    });

  test('a body that does not come', async () => {
    const answer = await raw(
      'POST /v1/sandboxes HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{"a',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 408 [\s\S]*"SBX_REQUEST_TIMEOUT"/);
  });

  test('a header that does not come', async () => {
    const answer = await raw('GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ');
    expect(answer).toMatch(/^HTTP\/1\.1 408 [\s\S]*"SBX_REQUEST_TIMEOUT"/);
  });
});

test('readiness: not ready, and stopping', async () => {
  let ready = false;
  const app = await createHttpServer({ ...f.options, isReady: () => ready });
  const socketPath = `${f.target.socketPath}-3`;
  await app.listen({ path: socketPath });
  const call = (path: string) => answerTo(send({ socketPath }, 'GET', path));
  const early = await call('/readyz');
  expect(early.json).toMatchObject({ status: 503, code: 'SBX_UNAVAILABLE' });
  expect(early.headers['retry-after']).toBe('1');
  ready = true;
  expect((await call('/readyz')).json).toEqual({ status: 'ok' });
  await app.close();
  await expect(call('/healthz')).rejects.toThrow(/ENOENT|ECONNREFUSED/);
});
