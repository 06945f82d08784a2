import type { Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Preview } from '../support/preview-world.ts';
import { PreviewWorld, Visitor } from '../support/preview-world.ts';

const PATIENCE = { timeout: 20_000, interval: 20 };
const TOKEN = 'sandboxer-preview-token: {token}\r\n';
const GET = `GET / HTTP/1.1\r\nHost: {host}\r\n${TOKEN}Connection: close\r\n\r\n`;
const UPGRADE = `GET /ws HTTP/1.1\r\nHost: {host}\r\n${TOKEN}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
const FINE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine';

let world: PreviewWorld;
let preview: Preview;

beforeAll(async () => {
  world = await PreviewWorld.start();
  preview = await world.open();
}, 60_000);

beforeEach(() => {
  world.inside.seen.length = 0;
  world.inside.answer = (socket) => socket.end(FINE);
});

afterAll(() => world?.close());

const statusOf = (text: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);

async function visit(bytes: string): Promise<string> {
  return new Visitor(preview, bytes).all();
}

/** The server lives, and holds nothing of the visit any more. */
async function expectClean(): Promise<void> {
  await vi.waitFor(() => expect(world.inside.connections).toBe(0), PATIENCE);
  world.inside.answer = (socket) => socket.end(FINE);
  expect(await visit(GET)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*fine$/s);
}

describe('the head of a visitor’s request', () => {
  it('preview: a second Host is refused', async () => {
    const twice = GET.replace('\r\n', '\r\nHost: other.localhost\r\n');
    expect(statusOf(await visit(twice))).toBe(400);
    expect(world.inside.seen).toEqual([]);
  });

  it('preview: a visitor without the token is never asked for a body', async () => {
    const expecting = 'Expect: 100-continue\r\nContent-Length: 4\r\n';
    const post = `POST / HTTP/1.1\r\nHost: {host}\r\n${expecting}Connection: close\r\n\r\n`;
    expect(statusOf(await visit(post))).toBe(401);
    const admitted = new Visitor(preview, post.replace('\r\n\r\n', `\r\n${TOKEN}\r\n`));
    await admitted.until('100 Continue');
    admitted.socket.write('body');
    expect(await admitted.all()).toMatch(/200 OK.*fine$/s);
  });

  it('preview: a refusal is read also when the visitor sent 4 MB and closes', async () => {
    const visitor = new Visitor(
      preview,
      'POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4000000\r\nConnection: close\r\n\r\n',
    );
    let failed: Error | null = null;
    visitor.socket.on('error', (error) => (failed = error));
    visitor.socket.write(Buffer.alloc(4_000_000));
    expect(statusOf(await visitor.all())).toBe(401);
    expect(failed).toBeNull();
  });
});

describe('a visitor’s request target', () => {
  const at = (target: string) =>
    `GET ${target} HTTP/1.1\r\nHost: {host}\r\n${TOKEN}Connection: close\r\n\r\n`;

  it.each([
    '//',
    '//evil.example/x',
    '///',
    '/\\evil',
    '\\\\',
    '/%',
    '/%ff%00',
    '/?%',
    '/a#b',
    '/:0',
    '//:0',
  ])('a visitor’s request target is passed on as it is, or refused: %s', async (target) => {
    const status = statusOf(await visit(at(target)));
    if (target.startsWith('/')) {
      expect(status).toBe(200);
      expect(world.inside.seen[0]).toContain(`GET ${target} HTTP/1.1`);
    } else expect(status).toBe(400);
    await expectClean();
  });

  it.each(['*', 'http://', 'http://[', 'http://evil.example/', 'ftp://{host}/', 'x', 'http://a@{host}/'])(
    'a visitor’s request target that names no preview is refused: %s',
    async (target) => {
      expect([400, 404]).toContain(statusOf(await visit(at(target))));
      expect(world.inside.seen).toEqual([]);
      await expectClean();
    },
  );

  it('a visitor’s request target may name the host, too, and that host counts', async () => {
    const text = await visit(
      `GET http://{host}/a?b HTTP/1.1\r\nHost: other\r\n${TOKEN}Connection: close\r\n\r\n`,
    );
    expect(statusOf(text)).toBe(200);
    expect(world.inside.seen[0]).toMatch(/^GET \/a\?b HTTP\/1\.1/);
  });

  it.each([`/${'a'.repeat(100_000)}`, '/\u0001', '/ b', '/é', '/\u0000', ''])(
    'a malformed request target is refused',
    async (target) => {
      expect(statusOf(await visit(at(target)))).toBeGreaterThanOrEqual(400);
      await expectClean();
    },
  );

  it('a request target of OPTIONS may not be the whole server', async () => {
    expect(
      statusOf(await visit(`OPTIONS * HTTP/1.1\r\nHost: {host}\r\n${TOKEN}Connection: close\r\n\r\n`)),
    ).toBe(400);
    await expectClean();
  });
});

const BODY = 'content-length: 2\r\n\r\nhi';

/** Nothing that can be passed on: the visitor is told so. */
const NO_ANSWER: Record<string, string> = {
  'nothing at all': '',
  'status 000': `HTTP/1.1 000 x\r\n${BODY}`,
  'status 099': `HTTP/1.1 099 x\r\n${BODY}`,
  'status 99': `HTTP/1.1 99 x\r\n${BODY}`,
  'status 1000': `HTTP/1.1 1000 x\r\n${BODY}`,
  'status -1': `HTTP/1.1 -1 x\r\n${BODY}`,
  'another protocol': 'SSH-2.0-OpenSSH_9.2\r\n',
  'a header name with a space': `HTTP/1.1 200 OK\r\na b: c\r\n${BODY}`,
  'a header name of other letters': `HTTP/1.1 200 OK\r\n\xe9: c\r\n${BODY}`,
  'a header without name': `HTTP/1.1 200 OK\r\n: c\r\n${BODY}`,
  'a NUL in a header': `HTTP/1.1 200 OK\r\na: b\0c\r\n${BODY}`,
  'a bare CR in a header': `HTTP/1.1 200 OK\r\na: b\rc: d\r\n${BODY}`,
  'two content lengths': `HTTP/1.1 200 OK\r\ncontent-length: 3\r\n${BODY}`,
  'a negative content length': 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nhi',
  'length and chunks': `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n${BODY}`,
  'an unknown coding': 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n',
  'an unasked upgrade': 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nbytes',
  'an upgrade to nothing': 'HTTP/1.1 101 Switching Protocols\r\n\r\nbytes',
  'interim answers alone': 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(20_000),
  'a header without end': `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(100_000)}`,
  'one very long header': `HTTP/1.1 200 OK\r\na: ${'b'.repeat(1_000_000)}`,
  'half a header': 'HTTP/1.1 200 OK\r\na: b\r\n',
};

/** An answer has begun: what is broken in it cuts the connection, so that nobody takes it for whole. */
const CUT: Record<string, string> = {
  'a body that is too short': 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhi',
  'chunks without end': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n',
  'a chunk with a wrong size': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\nzz\r\n',
  'trailers without end': `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n${'a: b\r\n'.repeat(100_000)}`,
};

/** Odd, and an answer all the same. */
const ANSWERS: Record<string, string> = {
  'a body that is too long': `HTTP/1.1 200 OK\r\n${BODY} and more`,
  'a second answer': `HTTP/1.1 200 OK\r\n${BODY}HTTP/1.1 500 no\r\n${BODY}`,
  'a reason with control characters': `HTTP/1.1 200 \u0001\u0007\r\n${BODY}`,
  'no reason': `HTTP/1.1 200\r\n${BODY}`,
  'bytes beyond ASCII': `HTTP/1.1 200 OK\r\na: \xe9\xff\r\n${BODY}`,
  'an interim answer first': `HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\n${BODY}`,
  trailers: 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: a\r\n\r\n2\r\nhi\r\n0\r\na: b\r\n\r\n',
  'no length': 'HTTP/1.0 200 OK\r\n\r\nhi',
};

/** Says it all and ends, whatever the other side does. */
const saying = (bytes: string) => (socket: Socket) => void socket.end(Buffer.from(bytes, 'latin1'));

describe('a service inside that answers with', () => {
  it.each(Object.entries(NO_ANSWER))('%s: the visitor gets a 502', async (_name, bytes) => {
    for (const asked of [GET, UPGRADE.replace('Upgrade: websocket', 'Upgrade: y')]) {
      // An upgrade that was asked for is one.
      if (asked !== GET && bytes.includes('upgrade: x')) continue;
      world.inside.answer = saying(bytes);
      const text = await visit(asked);
      expect(statusOf(text)).toBe(502);
      const problem = JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as Record<string, string>;
      expect(problem).toMatchObject({ code: 'SBX_PREVIEW_FAILED', status: 502 });
      expect(problem.remedy).toContain('HTTP/1.1');
    }
    await expectClean();
  });

  it.each(Object.entries(CUT))('%s: the connection is cut', async (_name, bytes) => {
    world.inside.answer = saying(bytes);
    const text = await visit(GET.replace('Connection: close\r\n', ''));
    expect(statusOf(text)).toBe(200);
    expect(text).not.toContain('0\r\n\r\n');
    await expectClean();
  });

  it.each(Object.entries(ANSWERS))('%s: it is passed on', async (_name, bytes) => {
    for (const asked of [GET, UPGRADE]) {
      world.inside.answer = saying(bytes);
      const text = await visit(asked);
      expect(statusOf(text)).toBe(200);
      expect(text).toContain('hi');
      expect(text).not.toContain('and more');
      expect(text.match(/HTTP\/1/g)).toHaveLength(1);
    }
    await expectClean();
  });

  it('a service inside that sends nothing, or hangs up at any byte of its answer, leaves nothing behind', async () => {
    const whole = 'HTTP/1.1 200 OK\r\na: b\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n';
    for (let length = 0; length < whole.length; length += 3) {
      world.inside.answer = (socket) => {
        socket.write(whole.slice(0, length), () => socket.resetAndDestroy());
      };
      expect([200, 502]).toContain(statusOf(await visit(GET)));
    }
    await expectClean();
  });

  it('a browser gets the error in words', async () => {
    world.inside.answer = saying('');
    const text = await visit(GET.replace('Connection', 'Accept: text/html\r\nConnection'));
    expect(text).toMatch(/content-type: text\/plain.*SBX_PREVIEW_FAILED/s);
  });
});
