import { createHash, randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Preview } from '../support/preview-world.ts';
import { PreviewWorld, Visitor } from '../support/preview-world.ts';

const PATIENCE = { timeout: 20_000, interval: 20 };
const FINE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine';
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n';

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

interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly string[];
  readonly body?: string;
  /** The token goes as a header unless it is told here how. */
  readonly token?: string;
}

function message({ method = 'GET', path = '/', headers = [], body = '', token }: Asked): string {
  const given = token ?? 'sandboxer-preview-token: {token}';
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: {host}', given, ...headers].filter(
    (line) => line !== '',
  );
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

const closing = (asked: Asked) =>
  message({ ...asked, headers: [...(asked.headers ?? []), 'Connection: close'] });
const upgrading = (asked: Asked) =>
  message({ ...asked, headers: [...(asked.headers ?? []), 'Connection: Upgrade', 'Upgrade: websocket'] });
const visit = (asked: Asked) => new Visitor(preview, closing(asked)).all();
const statusOf = (text: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);
const headerOf = (text: string, name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(text)?.[1]?.trim();
const insideIsFree = () => vi.waitFor(() => expect(world.inside.connections).toBe(0), PATIENCE);
const insideIsReached = () => vi.waitFor(() => expect(world.inside.connections).toBe(1), PATIENCE);

describe('the token', () => {
  const inQuery = '/x?a=%20&sandboxer_token={token}&b=~';

  it.each([
    [
      'a POST',
      closing({ method: 'POST', path: inQuery, token: '', headers: ['Content-Length: 0'] }),
      '/x?a=%20&b=~',
    ],
    ['an upgrade', upgrading({ path: inQuery, token: '' }), '/x?a=%20&b=~'],
    ['another spelling', upgrading({ path: '/?%73andboxer%5ftoken={token}', token: '' }), '/'],
    [
      'the header, too',
      closing({ method: 'PUT', path: inQuery, headers: ['Content-Length: 0'] }),
      '/x?a=%20&b=~',
    ],
    ['a cookie', closing({ token: 'Cookie: a=1; sandboxer_preview={token}; b=2' }), '/'],
    ['a referrer', closing({ headers: ['Referer: http://{host}/?sandboxer_token={token}&c'] }), '/'],
  ])('the token does not reach the service inside with %s', async (_how, bytes, path) => {
    expect(statusOf(await new Visitor(preview, bytes).all())).toBe(200);
    const [head = ''] = world.inside.seen;
    expect(head.split(' ')[1]).toBe(path);
    expect(head).not.toContain(preview.token);
    expect(head).not.toContain('sandboxer');
  });

  it.each(['//evil.example/', '/\\evil.example/', '/a//b?x=%2f&y', '//', '/?&'])(
    'the token leaves an address on the same host: %s',
    async (path) => {
      const asked = path.includes('?') ? `${path}&` : `${path}?`;
      const text = await visit({ path: `${asked}sandboxer_token={token}`, token: '' });
      expect(statusOf(text)).toBe(302);
      const base = `http://${preview.host}`;
      const target = new URL(headerOf(text, 'location') as string, base);
      expect(target.origin).toBe(base);
      expect(target.pathname + target.search).toBe(path.replace('\\', '/').replace(/\?&$/, '?&'));
      expect(world.inside.seen).toEqual([]);
    },
  );

  it('the token is found among cookies that a page of another preview planted', async () => {
    const cookies = 'sandboxer_preview=planted; sandboxer_preview={token}; sandboxer_preview=';
    expect(statusOf(await visit({ token: `Cookie: ${cookies}` }))).toBe(200);
    expect(world.inside.seen[0]).not.toMatch(/^cookie/im);
  });

  it('the token in a cookie serves the pages of this sandbox alone', async () => {
    const cookie = 'Cookie: sandboxer_preview={token}';
    const from = async (...headers: string[]) => {
      const asked = { token: cookie, headers: [...headers, 'Content-Length: 0'], method: 'POST' };
      const upgrade = new Visitor(preview, upgrading({ token: cookie, headers })).all();
      expect(statusOf(await upgrade)).toBe(statusOf(await visit(asked)));
      return statusOf(await upgrade);
    };
    expect(await from('Origin: http://{host}')).toBe(200);
    const otherPort = preview.host.replace(/^\d+/, '1');
    expect(await from(`Origin: http://${otherPort}`)).toBe(200);
    expect(await from('Origin: null', 'Sec-Fetch-Site: same-origin')).toBe(200);
    expect(await from('Origin: null')).toBe(403);
    expect(await from('Origin: http://evil.example')).toBe(403);
    const otherSandbox = preview.host.replace(/-[a-z0-9]+/, '-aaaaaaaaaaaaaaaaaaaa');
    expect(await from(`Origin: http://${otherSandbox}`, 'Sec-Fetch-Site: same-site')).toBe(403);
    // A program that sends the token itself is nobody's cat's-paw.
    const own = { method: 'POST', headers: ['Origin: http://evil.example', 'Content-Length: 0'] };
    expect(statusOf(await visit(own))).toBe(200);
  });
});

describe('headers', () => {
  it('headers of the visitor: the service sees its own host, and gets the other as a header', async () => {
    await visit({
      headers: [
        'Origin: http://{host}',
        'Connection: x-private',
        'X-Private: 1',
        'X-Public: 2',
        'X-Forwarded-Host: forged',
        'X-Forwarded-Proto: forged',
        'Forwarded: for=forged',
        'TE: trailers',
      ],
    });
    const [head = ''] = world.inside.seen;
    expect(headerOf(head, 'host')).toBe(`localhost:${world.inside.port}`);
    expect(headerOf(head, 'origin')).toBe(`http://localhost:${world.inside.port}`);
    expect(headerOf(head, 'x-forwarded-host')).toBe(preview.host);
    expect(headerOf(head, 'x-forwarded-proto')).toBe('http');
    expect(headerOf(head, 'x-forwarded-for')).toBe('127.0.0.1');
    expect(headerOf(head, 'x-public')).toBe('2');
    expect(head).not.toMatch(/forged|^x-private|^te:/im);
  });

  it('headers of the service: none for other previews, none in our name', async () => {
    const lines = [
      'Set-Cookie: a=1; Domain=localhost; Path=/',
      'Set-Cookie: b=2;\tDOMAIN = localhost',
      'Set-Cookie: Domain=3; Secure',
      'Set-Cookie: sandboxer_preview=; Max-Age=0',
      'Set-Cookie: __Host-sandboxer_preview=x',
      'Clear-Site-Data: "*"',
      'Alt-Svc: h2="evil.example:443"',
      'Connection: x-private',
      'X-Private: 1',
    ];
    for (const start of ['HTTP/1.1 200 OK', SWITCH.trim()]) {
      world.inside.answer = (socket) => socket.end(`${[start, ...lines].join('\r\n')}\r\n\r\n`);
      const asked = start.includes('101') ? upgrading({}) : closing({});
      const text = await new Visitor(preview, asked).all();
      expect(statusOf(text)).toBe(start.includes('101') ? 101 : 200);
      expect(text.match(/^set-cookie: .*$/gim)?.map((line) => line.slice(12).trim())).toEqual([
        'a=1; Path=/',
        'b=2',
        'Domain=3; Secure',
      ]);
      expect(text).not.toMatch(/clear-site-data|alt-svc|x-private/i);
    }
  });

  it.each([
    ['http://localhost:{port}/a?b#c', '/a?b#c'],
    ['https://127.0.0.1:{port}', '/'],
    ['//[::1]:{port}?x', '/?x'],
    ['http://localhost:{port}//evil.example', '/.//evil.example'],
    ['http://localhost:1/a', 'http://localhost:1/a'],
    ['https://elsewhere.example/a', 'https://elsewhere.example/a'],
    ['/a/b', '/a/b'],
  ])('a redirect inside stays on the preview: %s', async (location, expected) => {
    const there = location.replace('{port}', String(world.inside.port));
    world.inside.answer = (socket) =>
      socket.end(`HTTP/1.1 302 Found\r\nLocation: ${there}\r\nContent-Length: 0\r\n\r\n`);
    expect(headerOf(await visit({}), 'location')).toBe(expected);
  });

  it('HEAD and OPTIONS are the service’s to answer', async () => {
    const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nAccess-Control-Allow-Origin: *\r\n\r\n';
    world.inside.answer = (socket) => socket.end(answer);
    const head = await visit({ method: 'HEAD' });
    expect(headerOf(head, 'content-length')).toBe('1000');
    expect(head).toMatch(/\r\n\r\n$/);
    world.inside.answer = (socket) => socket.end(answer.replace('1000', '0'));
    const options = await visit({
      method: 'OPTIONS',
      path: '/x',
      headers: ['Access-Control-Request-Method: PUT'],
    });
    expect(headerOf(options, 'access-control-allow-origin')).toBe('*');
    expect(world.inside.seen[1]).toMatch(/^OPTIONS \/x/);
  });
});

describe('bodies', () => {
  it.each([
    ['length and chunks', 'Content-Length: 3\r\nTransfer-Encoding: chunked', '0\r\n\r\n'],
    ['two lengths', 'Content-Length: 3\r\nContent-Length: 4', 'abcd'],
    ['a coding after chunked', 'Transfer-Encoding: chunked, identity', '0\r\n\r\n'],
    ['a coding before chunked', 'Transfer-Encoding: gzip, chunked', '0\r\n\r\n'],
    ['a folded header', 'X: a\r\n Transfer-Encoding: chunked', '0\r\n\r\n'],
    ['a space before the colon', 'Content-Length : 3', 'abc'],
    ['a bare line feed', 'X: a\nTransfer-Encoding: chunked', '0\r\n\r\n'],
  ])('bodies that two servers could read in two ways are refused: %s', async (_name, header, body) => {
    const text = await new Visitor(preview, closing({ method: 'POST', headers: [header], body })).all();
    expect(statusOf(text)).toBe(400);
    expect(world.inside.seen).toEqual([]);
    await insideIsFree();
  });

  it('bodies that are unread do not hold up the next request', async () => {
    world.inside.answer = (socket) => socket.end('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n');
    const headers = ['Content-Length: 100000'];
    const visitor = new Visitor(preview, message({ method: 'POST', headers, body: 'x'.repeat(10) }));
    await visitor.until('413');
    world.inside.answer = (socket) => socket.end(FINE);
    visitor.socket.write('x'.repeat(99_990));
    visitor.socket.write(closing({}).replace('{host}', preview.host).replace('{token}', preview.token));
    expect(await visitor.all()).toMatch(/413.*200 OK.*fine$/s);
    await insideIsFree();
  });

  it('bodies wait for our 100 Continue', async () => {
    let body = '';
    world.inside.answer = (socket) => {
      socket.on('data', (chunk: Buffer) => {
        body += chunk.toString();
        if (body === 'hello') socket.end(FINE);
      });
      socket.resume();
    };
    const headers = ['Content-Length: 5', 'Expect: 100-continue', 'Connection: close'];
    const visitor = new Visitor(preview, message({ method: 'PUT', headers }));
    await visitor.until('100 Continue');
    visitor.socket.write('hello');
    expect(await visitor.all()).toContain('200 OK');
    expect(world.inside.seen[0]).not.toMatch(/^expect/im);
  });

  it('bodies go through whole, both ways, at the pace of a slow reader', async () => {
    const bytes = randomBytes(24 * 1_048_576);
    const digest = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest('hex');
    world.inside.answer = (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes.length}\r\n\r\n`);
      socket.pipe(socket);
    };
    const headers = [`Content-Length: ${bytes.length}`, 'Connection: close'];
    const visitor = new Visitor(preview, message({ method: 'POST', headers }));
    const parts: Buffer[] = [];
    visitor.socket.removeAllListeners('data');
    visitor.socket.on('data', (chunk: Buffer) => {
      parts.push(chunk);
      visitor.socket.pause();
      setImmediate(() => visitor.socket.resume());
    });
    visitor.socket.write(bytes);
    await visitor.all();
    const whole = Buffer.concat(parts);
    expect(digest(whole.subarray(whole.indexOf('\r\n\r\n') + 4))).toBe(digest(bytes));
  });
});

describe('connections', () => {
  it('connections answer requests sent ahead in order, one after the other', async () => {
    let answered = 0;
    const ahead: boolean[] = [];
    world.inside.answer = (socket, head) => {
      ahead.push(world.inside.seen.length > answered + 1);
      const path = head.split(' ')[1] as string;
      setImmediate(() => {
        answered += 1;
        socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${path.length}\r\n\r\n${path}`);
      });
    };
    const bytes = message({ path: '/1' }) + message({ path: '/2' }) + closing({ path: '/3' });
    const text = await new Visitor(preview, bytes).all();
    expect(text.match(/\r\n\r\n\/\d/g)).toEqual(['\r\n\r\n/1', '\r\n\r\n/2', '\r\n\r\n/3']);
    expect(ahead).toEqual([false, false, false]);
    await insideIsFree();
  });

  it.each([
    ['while he waits', message({})],
    ['in the middle of a body', message({ method: 'POST', headers: ['Content-Length: 9'], body: 'abc' })],
    ['with more sent ahead', message({}).repeat(5)],
    ['while an upgrade waits', upgrading({})],
  ])('inside are let go when the visitor hangs up %s', async (_when, bytes) => {
    world.inside.answer = () => {};
    const visitor = new Visitor(preview, bytes);
    await insideIsReached();
    visitor.socket.destroy();
    await insideIsFree();
  });

  it('inside are let go when the visitor hangs up in the middle of an answer', async () => {
    world.inside.answer = (socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\nfirst');
    const visitor = new Visitor(preview, message({}));
    await visitor.until('first');
    visitor.socket.resetAndDestroy();
    await insideIsFree();
  });

  it('connections forward the head of an answer before its body comes', async () => {
    world.inside.answer = (socket) =>
      void socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n');
    const visitor = new Visitor(preview, message({}));
    await visitor.until('text/event-stream');
    visitor.socket.destroy();
    await insideIsFree();
  });

  it('connections that ask for another HTTP, or bring a body, stay what they are', async () => {
    const h2c = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQ'];
    const visitor = new Visitor(preview, message({ headers: h2c }));
    await visitor.until('fine');
    visitor.socket.destroy();
    expect(world.inside.seen[0]).not.toMatch(/h2c|http2-settings/i);
    const headers = ['Connection: Upgrade', 'Upgrade: websocket', 'Content-Length: 3'];
    const other = new Visitor(preview, message({ headers, body: 'abc' }));
    await other.until('fine');
    other.socket.destroy();
    expect(headerOf(world.inside.seen[1] as string, 'content-length')).toBe('3');
    expect(world.inside.seen[1]).not.toMatch(/^upgrade/im);
    await insideIsFree();
  });
});

describe('upgraded connections', () => {
  /** Agrees and hands over the connection. */
  const agreeing = (then: (socket: Socket) => void, behind = '') => {
    world.inside.answer = (socket) => {
      socket.write(`${SWITCH}Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Extensions: x\r\n\r\n${behind}`);
      then(socket);
    };
  };

  it('upgraded connections carry what was sent before the answer and right behind it', async () => {
    agreeing((socket) => void socket.pipe(socket), 'welcome ');
    const headers = ['Sec-WebSocket-Protocol: chat, other', 'Sec-WebSocket-Key: abc'];
    const visitor = new Visitor(preview, `${upgrading({ headers })}early `);
    visitor.socket.write('later');
    const text = await visitor.until('later');
    expect(text).toMatch(/welcome early later$/);
    expect(headerOf(text, 'sec-websocket-protocol')).toBe('chat');
    expect(headerOf(text, 'sec-websocket-extensions')).toBe('x');
    expect(headerOf(world.inside.seen[0] as string, 'sec-websocket-protocol')).toBe('chat, other');
    visitor.socket.destroy();
    await insideIsFree();
  });

  it('upgraded connections can be closed by one half', async () => {
    agreeing((socket) => {
      socket.resume();
      socket.once('end', () => socket.end('last words'));
    });
    const visitor = new Visitor(preview, upgrading({}));
    await visitor.until('101');
    visitor.socket.end();
    expect(await visitor.all()).toMatch(/last words$/);
    await insideIsFree();
  });

  it('upgraded connections are a plain answer where the service refuses', async () => {
    world.inside.answer = (socket) => socket.end('HTTP/1.1 403 No\r\nContent-Length: 5\r\n\r\nnever');
    const text = await new Visitor(preview, `${upgrading({})}GET /second HTTP/1.1\r\n\r\n`).all();
    expect(text).toMatch(/^HTTP\/1\.1 403 No\r\n.*never$/s);
    expect(headerOf(text, 'connection')).toBe('close');
    expect(world.inside.seen).toHaveLength(1);
    await insideIsFree();
  });

  it('upgraded connections end when either side breaks', async () => {
    agreeing((socket) => void socket.once('data', () => socket.resetAndDestroy()));
    const visitor = new Visitor(preview, upgrading({}));
    await visitor.until('101');
    visitor.socket.write('x');
    await visitor.all();
    agreeing(() => {});
    const other = new Visitor(preview, upgrading({}));
    await other.until('101');
    other.socket.resetAndDestroy();
    await insideIsFree();
  });

  it('upgraded connections end with the grant, as every answer does', async () => {
    const short = await world.open({ expires_in: '3s' });
    agreeing((socket) => void socket.pipe(socket));
    const upgraded = new Visitor(short, upgrading({}));
    await upgraded.until('101');
    world.inside.answer = (socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\nendless');
    const answered = new Visitor(short, message({}));
    await answered.until('endless');
    await upgraded.all();
    await answered.all();
    expect(statusOf(await new Visitor(short, closing({})).all())).toBe(410);
    await insideIsFree();
  });

  it('upgraded connections do not hold up the end of the server', async () => {
    const other = await PreviewWorld.start();
    try {
      const shown = await other.open();
      other.inside.answer = (socket) => {
        socket.write(`${SWITCH}\r\n`);
        socket.pipe(socket);
      };
      const visitor = new Visitor(shown, upgrading({}));
      await visitor.until('101');
      await other.stopServer();
      await visitor.all();
    } finally {
      await other.close();
    }
  });
});
