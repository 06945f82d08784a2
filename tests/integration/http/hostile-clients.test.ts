import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { Inside } from '../../support/preview-world.ts';
import type { Fixture } from './fixture.ts';
import { startLiveFixture } from './live-fixture.ts';

const PATIENCE = { timeout: 20_000, interval: 20 };
const inside = new Inside();
let f: Fixture;
let id: string;
beforeAll(async () => {
  await inside.listen();
  f = await startLiveFixture({ limits: { execBytes: 1_048_576 } });
  id = await f.create();
}, 60_000);
afterAll(async () => {
  inside.close();
  await f?.close();
});

/** The server answers, and nothing is held for anybody who is gone. */
afterEach(async () => {
  const clean = async () => {
    const { text } = await f.call('GET', '/metrics');
    expect(text).toMatch(/^sandboxer_http_open_streams 0$/m);
    expect(text).toMatch(/^sandboxer_http_event_followers 0$/m);
    expect(inside.connections).toBe(0);
    const { json } = await f.call('GET', `/v1/sandboxes/${id}/processes`);
    expect(json.items.filter(({ running }: { running: boolean }) => running)).toEqual([]);
  };
  await vi.waitFor(clean, PATIENCE);
});

interface Raw {
  readonly socket: Socket;
  text: string;
  readonly closed: Promise<void>;
}

function raw(bytes: string | Buffer): Raw {
  const socket = connect(f.target.socketPath as string);
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  const client = { socket, text: '', closed };
  socket.on('data', (chunk: Buffer) => {
    client.text += chunk.toString('latin1');
  });
  socket.write(bytes);
  return client;
}

const arrives = (client: Raw, what: string) =>
  vi.waitFor(() => expect(client.text).toContain(what), PATIENCE);

const KEY = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
const upgrade = (path: string, headers = KEY) =>
  `GET /v1/sandboxes/${id}/${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${headers}\r\n`;

/** A frame as a client has to send it, masked with zeros. */
function frame(opcode: number, payload: Buffer | string, flags = 0x80): Buffer {
  const body = Buffer.from(payload);
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(BigInt(body.length));
  return Buffer.concat([Buffer.from([flags | opcode, 0x80 | 127]), length, Buffer.alloc(4), body]);
}

const SLEEP = JSON.stringify({ command: ['sleep', '600'] });

describe('a handshake', () => {
  test.each([
    ['without a key', ''],
    ['with a wrong key', 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n'],
    ['of another version', KEY.replace('13', '12')],
    ['with a broken protocol', `${KEY}Sec-WebSocket-Protocol: a,,b\r\n`],
  ])('%s is refused, and lets go of the port', async (_name, headers) => {
    for (const path of [`ports/${inside.port}/connect`, 'exec']) {
      // It never closes its side, and is not waited for.
      const client = raw(upgrade(path, headers));
      await client.closed;
      expect(client.text).toMatch(/^HTTP\/1\.1 400/);
    }
  });
});

describe('frames', () => {
  const MASKLESS = Buffer.from([0x82, 0x01, 0x00]);
  const BROKEN: [string, Buffer][] = [
    ['without a mask', MASKLESS],
    ['of an unknown kind', frame(3, 'x')],
    ['with reserved bits', frame(2, 'x', 0xf0)],
    ['of control that are too long', frame(9, Buffer.alloc(126))],
    ['of a close with a wrong code', frame(8, Buffer.from([0, 1]))],
    ['of text that is none', frame(1, Buffer.from([0xff, 0xfe]))],
    ['that continue nothing', frame(0, 'x')],
    ['larger than allowed', frame(2, Buffer.alloc(2_097_152))],
    ['longer than there are numbers', Buffer.concat([Buffer.from([0x82, 0xff]), Buffer.alloc(12, 0xff)])],
  ];

  test.each(BROKEN)('%s end their own connection', async (_name, bytes) => {
    const port = raw(upgrade(`ports/${inside.port}/connect`));
    await arrives(port, '101');
    const first = raw(upgrade('exec'));
    await arrives(first, '101');
    const running = raw(upgrade('exec'));
    await arrives(running, '101');
    running.socket.write(frame(1, SLEEP));
    await arrives(running, 'started');
    for (const client of [port, first, running]) client.socket.write(bytes);
    await Promise.all([port, first, running].map(({ closed }) => closed));
  });

  test.each([
    ['half a frame', Buffer.from([1, 0])],
    ['a frame longer than its message', Buffer.from([0, 0xff, 0xff, 0xff, 0xff])],
    ['an unknown type', Buffer.from([99, 0, 0, 0, 0])],
    ['a size that is none', Buffer.concat([Buffer.from([0x12, 0, 0, 0, 3]), Buffer.from('{}}')])],
  ])('a WebSocket frame of our own with %s is refused', async (_name, bytes) => {
    const client = raw(upgrade('exec'));
    await arrives(client, '101');
    client.socket.write(frame(1, SLEEP));
    await arrives(client, 'started');
    client.socket.write(frame(2, bytes));
    await arrives(client, 'SBX_INVALID_REQUEST');
    client.socket.destroy();
  });

  test('half a message, and then silence for ever, ends with the connection', async () => {
    const client = raw(upgrade('exec'));
    await arrives(client, '101');
    client.socket.write(frame(1, SLEEP).subarray(0, 20));
    client.socket.destroy();
  });
});

const exec = (accept: string) =>
  `POST /v1/sandboxes/${id}/exec HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${SLEEP.length}\r\n\r\n${SLEEP}`;
const get = (path: string, accept: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\n\r\n`;
const put = (path: string, type: string) =>
  `PUT /v1/sandboxes/${id}/${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`;

describe('a client that hangs up', () => {
  const REQUESTS: [string, () => string][] = [
    ['an exec', () => exec('application/json')],
    ['a stream of output', () => exec('application/x-ndjson')],
    ['events', () => get('/v1/events?after=0', 'text/event-stream')],
    ['a watch', () => get(`/v1/sandboxes/${id}/files/watch?path=.`, 'text/event-stream')],
    ['a tree', () => get(`/v1/sandboxes/${id}/files/tree?path=/usr/include`, 'application/x-tar')],
    ['an upload', () => put('files?path=f', 'application/octet-stream')],
    ['the upload of a tree', () => put('files/tree?path=.', 'application/x-tar')],
    ['an interactive exec', () => upgrade('exec')],
    ['a tunnel', () => upgrade(`ports/${inside.port}/connect`)],
  ];

  test.each(REQUESTS)('a client may hang up at any byte of %s', async (_name, request) => {
    const bytes = request();
    for (let end = 1; end < bytes.length; end += 17) {
      const client = raw(bytes.slice(0, end));
      client.socket.write('', () => client.socket.destroy());
      await client.closed;
    }
  });

  test.each(REQUESTS)(
    'a client may hang up as soon as %s is asked for, or a little later',
    async (_name, request) => {
      for (let turns = 0; turns < 12; turns += 1) {
        const client = raw(request());
        for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        client.socket.destroy();
        await client.closed;
      }
    },
  );
});
