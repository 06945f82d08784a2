import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ROUTE_TABLE } from '../../../src/http/server/route-table.ts';
import type { Fixture } from './fixture.ts';
import { responseTo, send } from './fixture.ts';
import { startLiveFixture } from './live-fixture.ts';

let f: Fixture;
let id: string;
beforeAll(async () => {
  f = await startLiveFixture();
  id = await f.create();
}, 60_000);
afterAll(() => f?.close());

/** The head of the answer, once the whole answer has come. */
async function head(path: string, accept = '*/*') {
  const response = await responseTo(send(f.target, 'HEAD', path, { headers: { accept } }));
  let bytes = 0;
  for await (const part of response) bytes += (part as Buffer).length;
  expect(bytes).toBe(0);
  return { status: response.statusCode, type: response.headers['content-type'] };
}

async function expectNoStreams(): Promise<void> {
  const open = async () => (await f.call('GET', '/metrics')).text;
  const none = async () => expect(await open()).toMatch(/^sandboxer_http_open_streams 0$/m);
  await vi.waitFor(none, { timeout: 20_000, interval: 20 });
}

const PLAIN = ROUTE_TABLE.filter(({ method, url }) => method === 'GET' && !url.includes('{')).map(
  ({ url }) => url,
);

test.each(PLAIN)('HEAD %s is GET without the body', async (url) => {
  const { status, headers } = await f.call('GET', url);
  expect(await head(url)).toEqual({ status, type: headers['content-type'] });
});

test('HEAD of a stream is its head, and holds nothing open', async () => {
  const { json } = await f.call('POST', `/v1/sandboxes/${id}/exec`, {
    json: { command: ['sleep', '600'], background: true },
  });
  const here = `/v1/sandboxes/${id}`;
  const output = `${here}/processes/${json.process_id}/output`;
  const streams = [
    ['/v1/events', 'text/event-stream'],
    [`${here}/events`, 'text/event-stream'],
    [output, 'application/x-ndjson'],
    [output, 'text/event-stream'],
    [`${here}/files/watch?path=.`, 'application/x-ndjson'],
    [`${here}/files/tree?path=.`, 'application/x-tar'],
  ] as const;
  for (const [path, type] of streams) expect(await head(path, type), path).toEqual({ status: 200, type });
  await expectNoStreams();
  expect((await head(`${here}/exec`)).status).toBe(400);
  expect((await head('/v1/sandboxes/nobody')).status).toBe(404);
  const { json: after } = await f.call('GET', `${here}/processes`);
  expect(after.items).toMatchObject([{ process_id: json.process_id, running: true }]);
  await f.call('POST', `${here}/processes/${json.process_id}/signal`, { json: { signal: 'SIGKILL' } });
});

test('OPTIONS lists the methods of a path, and lets no other origin in', async () => {
  const headers = { origin: 'http://evil.example', 'access-control-request-method': 'POST' };
  const options = await f.call('OPTIONS', '/v1/sandboxes', { headers });
  expect(options.status).toBe(204);
  expect(options.headers.allow).toBe('POST, GET, HEAD, OPTIONS');
  expect(Object.keys(options.headers).join()).not.toContain('access-control');
  expect((await f.call('OPTIONS', '/v1/nothing')).status).toBe(404);
});
