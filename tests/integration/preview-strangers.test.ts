import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Preview } from '../support/preview-world.ts';
import { PreviewWorld, Visitor } from '../support/preview-world.ts';

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
  /** A header line with the token; left out, the token goes as our own header. */
  readonly token?: string;
}

function message(asked: Asked, connection: string): string {
  const { method = 'GET', path = '/', headers = [], token = 'sandboxer-preview-token: {token}' } = asked;
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: {host}', token, ...headers, connection];
  return `${lines.filter((line) => line !== '').join('\r\n')}\r\n\r\n`;
}

const upgrading = (asked: Asked) => message(asked, 'Connection: Upgrade\r\nUpgrade: websocket');
const visit = (asked: Asked) => new Visitor(preview, message(asked, 'Connection: close')).all();
const statusOf = (text: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);

describe('a request that a page of another host makes in the visitor’s name', () => {
  const cookie = 'Cookie: sandboxer_preview={token}';
  const otherSandbox = () => preview.host.replace(/-[a-z0-9]+/, '-aaaaaaaaaaaaaaaaaaaa');
  const from = async (site: string, mode: string, more: Omit<Asked, 'token'> = {}) => {
    const headers = [`Sec-Fetch-Site: ${site}`, `Sec-Fetch-Mode: ${mode}`, ...(more.headers ?? [])];
    return statusOf(await visit({ ...more, token: cookie, headers }));
  };

  it.each([
    ['same-site', 'no-cors'],
    ['same-site', 'cors'],
    ['same-site', 'same-origin'],
    ['same-site', 'websocket'],
    ['cross-site', 'no-cors'],
    ['cross-site', 'cors'],
    ['same-origin, same-site', 'no-cors'],
    ['unknown', 'no-cors'],
  ])('preview: a read with Sec-Fetch-Site %s and mode %s is refused', async (site, mode) => {
    for (const method of ['GET', 'HEAD', 'OPTIONS']) expect(await from(site, mode, { method })).toBe(403);
    const referer = [`Referer: http://${otherSandbox()}/`];
    expect(await from(site, mode, { headers: referer })).toBe(403);
    const upgrade = upgrading({
      token: cookie,
      headers: [`Sec-Fetch-Site: ${site}`, `Sec-Fetch-Mode: ${mode}`],
    });
    expect(statusOf(await new Visitor(preview, upgrade).all())).toBe(403);
    expect(world.inside.seen).toEqual([]);
  });

  it('preview: a form of another host is refused although the browser navigates', async () => {
    const post = { method: 'POST', headers: ['Content-Length: 0'] };
    expect(await from('same-site', 'navigate', post)).toBe(403);
    expect(await from('cross-site', 'navigate', post)).toBe(403);
  });

  it('preview: links, own pages and other ports of the sandbox are served', async () => {
    expect(await from('cross-site', 'navigate')).toBe(200);
    expect(await from('same-site', 'navigate')).toBe(200);
    expect(await from('same-origin', 'cors')).toBe(200);
    expect(await from('none', 'navigate')).toBe(200);
    const otherPort = [`Referer: http://${preview.host.replace(/^\d+/, '1')}/`];
    expect(await from('same-site', 'no-cors', { headers: otherPort })).toBe(200);
  });

  it('preview: a request that brings the token itself is served from any page, without a redirect', async () => {
    const headers = ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: no-cors'];
    expect(statusOf(await visit({ headers }))).toBe(200);
    expect(statusOf(await visit({ headers, token: '', path: '/a?sandboxer_token={token}' }))).toBe(200);
    const link = ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate'];
    expect(statusOf(await visit({ headers: link, token: '', path: '/a?sandboxer_token={token}' }))).toBe(302);
  });
});

describe('headers in our name that a service inside sends', () => {
  const FORGED = 'Sandboxer-Error: FORGED\r\nsandboxer_error: FORGED\r\nSANDBOXER-anything: FORGED\r\n';

  it.each([
    ['an answer', `HTTP/1.1 200 OK\r\n${FORGED}Content-Length: 4\r\n\r\nfine`],
    ['an error of its own', `HTTP/1.1 502 Bad\r\n${FORGED}Content-Length: 4\r\n\r\nfine`],
    ['an interim answer', `HTTP/1.1 103 Early Hints\r\n${FORGED}\r\n${FINE}`],
    [
      'trailers',
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: sandboxer-error\r\n\r\n4\r\nfine\r\n0\r\n${FORGED}\r\n`,
    ],
  ])('preview: %s reaches the visitor without them', async (_what, answer) => {
    world.inside.answer = (socket) => socket.end(answer);
    const text = await visit({});
    expect(text).toMatch(/^HTTP\/1\.1 (?:200|502) .*fine/s);
    expect(text).not.toMatch(/sandboxer|FORGED/i);
  });

  it('preview: an agreed upgrade reaches the visitor without them', async () => {
    world.inside.answer = (socket) => socket.end(`${SWITCH}${FORGED}\r\nhello`);
    const text = await new Visitor(preview, upgrading({})).all();
    expect(text).toMatch(/^HTTP\/1\.1 101 .*hello$/s);
    expect(text).not.toMatch(/sandboxer|FORGED/i);
  });

  it('preview: a visitor’s headers in our name do not reach the service', async () => {
    await visit({ headers: ['sandboxer-workspace: w', 'sandboxer_preview_token: x', 'x-mine: y'] });
    expect(world.inside.seen[0]).toMatch(/^x-mine: y/im);
    expect(world.inside.seen[0]).not.toMatch(/^sandboxer/im);
  });
});
