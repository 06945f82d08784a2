/** What a client sees of a request that is refused before its body was read, on real connections. */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestServer } from '../../support/test-server.ts';

let server: TestServer;
let key: string;
beforeAll(async () => {
  server = await TestServer.start((config) => ({
    listen: { ...config.listen, tcp: '127.0.0.1:0', trusted_proxies: ['127.0.0.1'] },
  }));
  key = readFileSync(join(server.dir, 'admin.key'), 'utf8').trim();
}, 60_000);
afterAll(() => server?.close());

interface Seen {
  readonly text: string;
  readonly error: string | null;
}

const port = () => Number(new URL(server.running.tcpAddress as string).port);

/** Writes everything, reads until the connection ends. */
function exchange(...bytes: (string | Buffer)[]): Promise<Seen> {
  return new Promise((resolve) => {
    const socket = connect(port(), '127.0.0.1');
    let text = '';
    let error: string | null = null;
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', (failure: NodeJS.ErrnoException) => (error = failure.code ?? failure.message));
    socket.once('close', () => resolve({ text, error }));
    for (const part of bytes) socket.write(part);
  });
}

const head = (line: string, headers: Record<string, string | number>, given = key) =>
  [
    `${line} HTTP/1.1`,
    'host: x',
    `authorization: Bearer ${given}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '',
    '',
  ].join('\r\n');

describe('a connection that is to be closed', () => {
  it('a body above the limit is answered with 413, and the answer is read', async () => {
    const body = Buffer.alloc(4_500_000, ' ');
    const headers = {
      connection: 'close',
      'content-type': 'application/json',
      'content-length': body.length,
    };
    for (let round = 0; round < 4; round += 1) {
      const { text, error } = await exchange(head('POST /v1/sandboxes', headers), body);
      expect(text).toMatch(/^HTTP\/1\.1 413 [\s\S]*"SBX_PAYLOAD_TOO_LARGE"/);
      expect(error).toBeNull();
    }
  });

  it('20 MB that are no archive are answered with 4xx, and the answer is read', async () => {
    const id = await server.sandbox({ id: 'ends' });
    const body = Buffer.alloc(20_000_000, 'A');
    const headers = {
      connection: 'close',
      'content-type': 'application/x-tar',
      'content-length': body.length,
    };
    const put = `PUT /v1/sandboxes/${id}/files/tree?path=x`;
    const { text, error } = await exchange(head(put, headers), body);
    expect(text).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(error).toBeNull();
  });

  it('a client that never sends the rest is cut off, after its answer', async () => {
    const headers = { 'content-type': 'application/json', 'content-length': 4_500_000 };
    const { text } = await exchange(head('POST /v1/sandboxes', headers), ' ');
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
  });
});

describe('Expect: 100-continue', () => {
  const body = JSON.stringify({ profile: 'profile.stub-memory', id: 'expected' });
  const headers = {
    expect: '100-continue',
    'content-type': 'application/json',
    'content-length': body.length,
    connection: 'close',
  };

  it('a request with a wrong key is answered at once, and never asked for its body', async () => {
    const { text } = await exchange(head('POST /v1/sandboxes', headers, 'not-a-key-of-anybody'));
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    expect(text).not.toContain('100 Continue');
    expect(text.toLowerCase()).toContain('connection: close');
  });

  it('a body that is too long by its own account is never asked for', async () => {
    const long = { ...headers, 'content-length': 400_000_000 };
    const { text } = await exchange(head('POST /v1/sandboxes', long));
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
  });

  it('a body that is wanted is asked for', async () => {
    const text = await new Promise<string>((resolve) => {
      const socket = connect(port(), '127.0.0.1');
      let seen = '';
      socket.on('data', (chunk: Buffer) => {
        seen += chunk.toString('latin1');
        if (seen === 'HTTP/1.1 100 Continue\r\n\r\n') socket.write(body);
      });
      socket.once('close', () => resolve(seen));
      socket.write(head('POST /v1/sandboxes', headers));
    });
    expect(text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
  });
});

describe('a header that was sent twice', () => {
  const close = { connection: 'close' };
  it.each([
    ['Host', '/v1/sandboxes', 'host: y\r\n'],
    ['Authorization', '/v1/sandboxes', 'authorization: Bearer another-key-0001\r\n'],
    ['Host on an unknown path', '/nothing', 'host: y\r\n'],
  ])('%s: 400', async (_name, path, extra) => {
    const request = head(`GET ${path}`, close);
    const at = request.indexOf('\r\n') + 2;
    const { text } = await exchange(request.slice(0, at), extra, request.slice(at));
    expect(text).toMatch(/^HTTP\/1\.1 400 [\s\S]*"SBX_INVALID_REQUEST"/);
  });

  it('Host of a WebSocket handshake: 400', async () => {
    const upgrade = {
      host: 'y',
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': 13,
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    };
    const { text } = await exchange(head('GET /v1/sandboxes/x/exec', upgrade));
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('wrong keys', () => {
  const ask = async (given: string, forwarded: string) => {
    const headers = { connection: 'close', 'x-forwarded-for': forwarded };
    const { text } = await exchange(head('GET /v1/whoami', headers, given));
    return Number(text.slice(9, 12));
  };

  it('wrong keys: limited by address, and a right key of the same address is served', async () => {
    const answers: number[] = [];
    for (let at = 0; at < 60; at += 1) answers.push(await ask(`wrong-key-number-${at}`, '9.9.9.9'));
    expect(answers.slice(0, 30)).toEqual(Array.from({ length: 30 }, () => 401));
    expect(answers.slice(30).filter((status) => status === 429).length).toBeGreaterThan(10);
    expect(await ask(key, '9.9.9.9')).toBe(200);
    expect(await ask('wrong-key-elsewhere', '9.9.9.8')).toBe(401);
  });
});
