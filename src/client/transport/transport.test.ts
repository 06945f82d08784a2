import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createStranger } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { SandboxerClient } from '../sandboxer-client.ts';
import { SandboxerApiError } from './api-error.ts';
import { SandboxerConnectionError } from './connection-error.ts';

const PROBLEM = {
  type: 'urn:x',
  title: 't',
  status: 503,
  detail: 'busy',
  code: 'SBX_UNAVAILABLE',
  remedy: 'wait',
  retryable: true,
};

type Handler = (request: IncomingMessage, response: ServerResponse, count: number) => void;

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

async function serve(handler: Handler, socketPath?: string) {
  let count = 0;
  const connections = new Set<unknown>();
  const requests: IncomingMessage[] = [];
  const server: Server = createServer((request, response) => {
    count += 1;
    requests.push(request);
    connections.add(request.socket);
    handler(request, response, count);
  });
  server.listen(socketPath ?? { port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  open.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = socketPath
    ? `unix:${socketPath}`
    : `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, server, requests, connections };
}

function answer(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

function clientFor(url: string, options = {}) {
  const client = new SandboxerClient({ url, key: 'k'.repeat(10), ...options });
  open.push(() => client.close());
  return client;
}

describe('Transport', () => {
  it('Transport keeps its connection and names the API version and the key', async () => {
    const { url, requests, connections } = await serve((_request, response) =>
      answer(response, 200, { ok: 1 }),
    );
    const client = clientFor(url);
    for (let n = 0; n < 5; n += 1) expect(await client.version()).toEqual({ ok: 1 });
    expect(connections.size).toBe(1);
    expect(requests[0]?.headers).toMatchObject({
      'sandboxer-api-version': '1',
      authorization: `Bearer ${'k'.repeat(10)}`,
    });
  });

  it('Transport speaks over a unix socket', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sbx-'));
    open.push(() => rmSync(directory, { recursive: true }));
    const { url } = await serve((_request, response) => answer(response, 200, {}), join(directory, 's.sock'));
    expect(await clientFor(url).version()).toEqual({});
  });

  it('Transport turns a problem into an error with everything it says', async () => {
    const { url } = await serve((_request, response) =>
      answer(response, 402, {
        ...PROBLEM,
        status: 402,
        code: 'SBX_INSUFFICIENT_CREDITS',
        creation: 'not_created',
        request_id: 'r1',
        field: 'ttl',
        shortfall: 7,
      }),
    );
    const error = await clientFor(url)
      .sandboxes.create()
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(SandboxerApiError);
    expect(error).toMatchObject({
      code: 'SBX_INSUFFICIENT_CREDITS',
      status: 402,
      creation: 'not_created',
      requestId: 'r1',
      field: 'ttl',
      remedy: 'wait',
    });
    expect(error.problem.shortfall).toBe(7);
  });

  it('Transport makes a problem of an answer that is no problem document', async () => {
    const { url } = await serve((_request, response) => response.writeHead(404).end('<html>nginx</html>'));
    await expect(clientFor(url).version()).rejects.toMatchObject({
      status: 404,
      detail: expect.stringContaining('nginx'),
    });
  });

  it('Transport repeats what is retryable, with the same idempotency key', async () => {
    const { url, requests } = await serve((_request, response, count) =>
      count < 3
        ? answer(response, 503, PROBLEM, { 'retry-after': '0' })
        : answer(response, 201, { sandbox_id: 'a' }),
    );
    expect(await clientFor(url).sandboxes.create({})).toEqual({ sandbox_id: 'a' });
    const keys = requests.map((request) => request.headers['idempotency-key']);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
  });

  it.each([
    ['402, whatever it says', 402, { ...PROBLEM, status: 402 }],
    ['what is not retryable', 409, { ...PROBLEM, status: 409, retryable: false }],
    ['a wait that is too long', 429, { ...PROBLEM, status: 429, retry_after_seconds: 3600 }],
  ])('Transport does not repeat %s', async (_what, status, problem) => {
    const { url, requests } = await serve((_request, response) => answer(response, status, problem));
    await expect(clientFor(url).version()).rejects.toBeInstanceOf(SandboxerApiError);
    expect(requests).toHaveLength(1);
  });

  it('Transport repeats a POST without a key only when nothing was done', async () => {
    const { url, requests } = await serve((_request, response, count) =>
      answer(
        response,
        count === 1 ? 503 : 502,
        { ...PROBLEM, status: count === 1 ? 503 : 502 },
        { 'retry-after': '0' },
      ),
    );
    await expect(clientFor(url).sandboxes.pause('a')).rejects.toMatchObject({ status: 502 });
    expect(requests).toHaveLength(2);
  });

  it('Transport does not repeat a create that failed: the key would only bring the same failure', async () => {
    const { url, requests } = await serve((_request, response) =>
      answer(response, 502, { ...PROBLEM, status: 502, code: 'SBX_EXTENSION_FAILED' }),
    );
    await expect(clientFor(url).sandboxes.create()).rejects.toMatchObject({ status: 502 });
    expect(requests).toHaveLength(1);
  });

  it('Transport repeats a read whose connection broke, and not a write', async () => {
    const { url, requests } = await serve((request, response, count) =>
      count === 1 || request.method === 'POST' ? request.socket.destroy() : answer(response, 200, {}),
    );
    const client = clientFor(url);
    expect(await client.version()).toEqual({});
    await expect(client.sandboxes.pause('a')).rejects.toMatchObject({ failure: 'lost', sent: true });
    expect(requests).toHaveLength(3);
  });

  it('Transport gives up after the retries it was given', async () => {
    const { url, requests } = await serve((_request, response) =>
      answer(response, 503, PROBLEM, { 'retry-after': '0' }),
    );
    await expect(clientFor(url, { maxRetries: 1 }).version()).rejects.toMatchObject({ status: 503 });
    expect(requests).toHaveLength(2);
  });

  it('Transport calls the start hook once when no server is reached', async () => {
    const url = `unix:${join(tmpdir(), 'sbx-nobody-here.sock')}`;
    let asked = 0;
    const onUnreachable = async () => {
      asked += 1;
    };
    const client = clientFor(url, { maxRetries: 0, onUnreachable });
    await expect(client.version()).rejects.toMatchObject({ failure: 'unreachable', sent: false });
    expect(asked).toBe(1);
  });

  it.each([false, true])(
    'Transport sends a stream whole to a server that had to be started (brief: %s)',
    async (brief) => {
      const directory = mkdtempSync(join(tmpdir(), 'sbx-'));
      open.push(() => rmSync(directory, { recursive: true }));
      const path = join(directory, 's.sock');
      const bodies: string[] = [];
      const onUnreachable = async () => {
        await serve((request, response) => {
          let body = '';
          request.on('data', (part) => (body += part));
          request.on('end', () => {
            bodies.push(body);
            answer(response, 200, {});
          });
        }, path);
      };
      async function* stream() {
        yield Buffer.from('all ');
        yield Buffer.from('of it');
      }
      const client = clientFor(`unix:${path}`, { brief, onUnreachable });
      await client.files.write('a', '/f', stream());
      await client.images.import('x', stream());
      expect(bodies).toEqual(['all of it', 'all of it']);
    },
  );

  it('Transport leaves a stream unread until a server is reached', async () => {
    let read = 0;
    async function* stream() {
      read += 1;
      yield Buffer.from('x');
    }
    const client = clientFor(`unix:${join(tmpdir(), 'sbx-nobody-here.sock')}`, { maxRetries: 1 });
    await expect(client.files.write('a', '/f', stream())).rejects.toMatchObject({ failure: 'unreachable' });
    expect(read).toBe(0);
  });

  it('Transport ends on abort and on timeout', async () => {
    const { url } = await serve(() => {});
    const abort = new AbortController();
    const aborted = clientFor(url).version({ signal: abort.signal });
    abort.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    await expect(clientFor(url).version({ timeoutMs: 20 })).rejects.toMatchObject({ failure: 'timeout' });
    const whole = new AbortController();
    const client = clientFor(url, { signal: whole.signal });
    const pending = client.version();
    whole.abort(new Error('all of it'));
    await expect(pending).rejects.toThrow('all of it');
  });

  it('Transport stops sending a body that the server has already refused', async () => {
    const { url } = await serve((_request, response) =>
      answer(response, 413, { ...PROBLEM, status: 413, retryable: false }, { connection: 'close' }),
    );
    let sent = 0;
    async function* endless() {
      for (;;) {
        sent += 1;
        yield Buffer.alloc(65_536);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    const error = await clientFor(url)
      .files.write('a', '/f', endless())
      .catch((thrown) => thrown);
    expect(error instanceof SandboxerApiError || error instanceof SandboxerConnectionError).toBe(true);
    expect(sent).toBeLessThan(10_000);
  });

  it('Transport passes on the error of a body that cannot be read', async () => {
    const { url } = await serve((request) => void request.resume());
    async function* broken() {
      yield Buffer.from('x');
      throw new Error('disk on fire');
    }
    await expect(clientFor(url).files.write('a', '/f', broken())).rejects.toThrow('disk on fire');
  });
});

describe('a brief client on a unix socket', () => {
  function socketPath(): string {
    const directory = mkdtempSync(join(tmpdir(), 'sbx-'));
    open.push(() => rmSync(directory, { recursive: true }));
    return join(directory, 's.sock');
  }

  it('a brief client on a unix socket gets answers of every kind, each over a connection of its own', async () => {
    const large = 'ä'.repeat(300_000);
    const { url, connections, requests } = await serve((request, response, count) => {
      if (count === 1) return answer(response, 200, { large });
      if (count === 2) {
        // Without a length, in pieces.
        response.write('{"a":');
        return setTimeout(() => response.end('1}'), 20);
      }
      if (count === 3) return response.writeHead(204).end();
      let body = '';
      request.on('data', (part) => (body += part));
      request.on('end', () => answer(response, 200, { got: body, type: request.headers['content-type'] }));
    }, socketPath());
    const client = clientFor(url, { brief: true });
    expect(await client.version()).toEqual({ large });
    expect(await client.version()).toEqual({ a: 1 });
    expect(await client.version()).toBeUndefined();
    const json = { text: 'ü' };
    expect(await client.request({ method: 'POST', path: '/v1/x', json })).toEqual({
      got: JSON.stringify(json),
      type: 'application/json',
    });
    expect(connections.size).toBe(4);
    expect(requests[0]?.headers).toMatchObject({ 'sandboxer-api-version': '1' });
  });

  it('a brief client tells problems, broken answers and other protocols apart, and retries what may be retried', async () => {
    const { url } = await serve((_request, response, count) => {
      if (count === 1) return answer(response, 503, PROBLEM, { 'retry-after': '0' });
      if (count === 2) return answer(response, 200, { ok: 1 });
      response.writeHead(200, { 'content-length': '100' });
      response.write('{');
      setTimeout(() => response.destroy(), 20);
    }, socketPath());
    const client = clientFor(url, { brief: true, maxRetries: 1 });
    expect(await client.version()).toEqual({ ok: 1 });
    await expect(client.version()).rejects.toMatchObject({ failure: 'lost', sent: true });

    const path = socketPath();
    const stranger = createStranger((socket) => socket.end('220 mail.example ESMTP\r\n'));
    stranger.listen(path);
    await once(stranger, 'listening');
    open.push(() => stranger.close());
    const there = clientFor(`unix:${path}`, { brief: true });
    await expect(there.version()).rejects.toMatchObject({ failure: 'protocol' });
    const nobody = clientFor(`unix:${path}.not`, { brief: true, maxRetries: 0 });
    await expect(nobody.version()).rejects.toMatchObject({ failure: 'unreachable', sent: false });
  });

  it('a brief client on a unix socket reads a refusal that came before its request was read', async () => {
    const path = socketPath();
    const body = JSON.stringify(PROBLEM);
    const refusal = `HTTP/1.1 403 No\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const hasty = createStranger((socket) => {
      socket.once('data', () => socket.pause().write(refusal, () => socket.destroy()));
    });
    hasty.listen(path);
    await once(hasty, 'listening');
    open.push(() => hasty.close());
    const client = clientFor(`unix:${path}`, { brief: true, maxRetries: 0 });
    const json = { text: 'x'.repeat(150_000) };
    await expect(client.request({ method: 'POST', path: '/v1/x', json })).rejects.toMatchObject({
      problem: PROBLEM,
    });
  });

  it('a brief client refuses values that would smuggle a header, honours the time limit and a signal', async () => {
    const { url } = await serve(() => {}, socketPath());
    const smuggler = clientFor(url, { brief: true, workspace: 'a\r\nx-evil: 1' });
    await expect(smuggler.version()).rejects.toThrow(TypeError);
    const client = clientFor(url, { brief: true, maxRetries: 0 });
    await expect(client.version({ timeoutMs: 30 })).rejects.toMatchObject({ failure: 'timeout' });
    const gone = new AbortController();
    setTimeout(() => gone.abort(new Error('enough')), 20);
    await expect(client.version({ signal: gone.signal })).rejects.toThrow('enough');
  });
});
