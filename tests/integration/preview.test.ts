import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSaasStubExtension } from '../../src/extensions/saas-stub/create.ts';
import type { RunningStub } from '../../src/extensions/saas-stub/server/start-server.ts';
import { startStubServer } from '../../src/extensions/saas-stub/server/start-server.ts';
import { loadConfig } from '../../src/main/config/config.ts';
import type { RunningServer } from '../../src/main/serve.ts';
import { serve } from '../../src/main/serve.ts';
import { removeDir, temporaryDir } from '../support/child-server.ts';
import { UnixClient } from '../support/unix-client.ts';

const dir = temporaryDir();
let stub: RunningStub;
let server: RunningServer;
let client: UnixClient;
let id: string;
let servicePort: number;

interface Access {
  readonly url: string;
  readonly token: string | null;
}

interface Page {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

/** What listens inside: it says what it saw, sets a cookie for a whole domain, and echoes after an upgrade. */
const SERVICE = `
const http = require('http');
let streaming = null;
const server = http.createServer((req, res) => {
  if (req.url === '/stream') { streaming = res; return void res.write('first '); }
  if (req.url === '/go') streaming.end('last');
  res.setHeader('set-cookie', 'a=1; Domain=localhost; Path=/');
  let body = ''; req.on('data', (d) => body += d);
  req.on('end', () => res.end(JSON.stringify({ url: req.url, method: req.method, headers: req.headers, body })));
});
server.on('upgrade', (req, socket) => { socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: echo\\r\\nConnection: Upgrade\\r\\n\\r\\n'); socket.pipe(socket); });
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

function get(url: string, headers: Record<string, string> = {}, method = 'GET', body = ''): Promise<Page> {
  const target = new URL(url);
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        port: target.port,
        path: target.pathname + target.search,
        method,
        headers: { host: target.host, ...headers },
      },
      (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
        );
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

const open = (body: object) =>
  client.expect<Access>(200, 'POST', `/v1/sandboxes/${id}/ports`, { port: servicePort, ...body });

beforeAll(async () => {
  stub = await startStubServer();
  const env = {
    SANDBOXER_STATE_DIR: dir,
    SANDBOXER_LOG_LEVEL: 'silent',
    SANDBOXER_LOCAL: '0',
    SANDBOXER_DOCKER: '0',
  };
  server = await serve({
    config: loadConfig(env),
    env,
    extensions: [createSaasStubExtension({ transport: stub.transport(), price: null })],
  });
  client = new UnixClient(server.socketPath, 2);
  ({ sandbox_id: id } = await client.expect<{ sandbox_id: string }>(201, 'POST', '/v1/sandboxes', {
    profile: 'profile.stub-basic',
  }));
  const { process_id } = await client.expect<{ process_id: string }>(
    202,
    'POST',
    `/v1/sandboxes/${id}/exec`,
    {
      command: [process.execPath, '-e', SERVICE],
      background: true,
    },
  );
  for (servicePort = 0; servicePort === 0; ) {
    const { body } = await client.call('GET', `/v1/sandboxes/${id}/processes`);
    if (!body.includes(process_id)) throw new Error('the service ended');
    const output = await client.call('POST', `/v1/sandboxes/${id}/exec`, {
      command: 'sleep 0.2; cat /dev/null',
    });
    if (output.status !== 200) throw new Error(output.body);
    servicePort = await outputPort(process_id);
  }
});

/** Reads the first line that the service printed. */
function outputPort(processId: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        socketPath: server.socketPath,
        path: `/v1/sandboxes/${id}/processes/${processId}/output?from=0`,
        headers: { accept: 'application/x-ndjson' },
      },
      (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => {
          text += chunk.toString();
          const port = /"data":"(\d+)\\n"/.exec(text)?.[1];
          if (port === undefined) return;
          response.destroy();
          resolve(Number(port));
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end();
  });
}

afterAll(async () => {
  client?.close();
  await server?.stop();
  await stub?.stop();
  removeDir(dir);
});

describe('previews', () => {
  it('previews move the token from the address into a cookie of their own origin', async () => {
    const { url, token } = await open({});
    const first = await get(`${url}&page=2`);
    expect(first.status).toBe(302);
    expect(first.headers.location).toBe('/?page=2');
    const cookie = String(first.headers['set-cookie']);
    expect(cookie).toContain('HttpOnly');
    expect(cookie).not.toMatch(/domain/i);
    const page = await get(url.split('?')[0] as string, { cookie: `${cookie.split(';')[0]}; mine=1` });
    expect(page.status).toBe(200);
    const seen = JSON.parse(page.body) as { headers: Record<string, string> };
    expect(seen.headers.cookie).toBe('mine=1');
    expect(page.body).not.toContain(token as string);
    expect(String(page.headers['set-cookie'])).not.toMatch(/domain/i);
  });

  it('forward methods, bodies and paths', async () => {
    const { url, token } = await open({});
    const base = (url.split('?')[0] as string).replace(/\/$/, '');
    const page = await get(
      `${base}/a/b?c=d`,
      { 'sandboxer-preview-token': token as string, 'content-type': 'text/plain' },
      'POST',
      'x'.repeat(100_000),
    );
    expect(JSON.parse(page.body)).toMatchObject({
      method: 'POST',
      url: '/a/b?c=d',
      body: 'x'.repeat(100_000),
    });
  });

  it('stream: what was written is there before the rest is', async () => {
    const { url, token } = await open({});
    const base = (url.split('?')[0] as string).replace(/\/$/, '');
    const headers = { 'sandboxer-preview-token': token as string };
    const target = new URL(base);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const { host, port } = target;
      request({ host: '127.0.0.1', port, path: '/stream', headers: { host, ...headers } }, resolve)
        .on('error', reject)
        .end();
    });
    const parts: string[] = [];
    for await (const part of response.setEncoding('utf8')) {
      parts.push(part as string);
      if (parts.length === 1) await get(`${base}/go`, headers);
    }
    expect(parts).toEqual(['first ', 'last']);
  });

  it('previews refuse without the token, with another port’s token, after expiry and at unknown addresses', async () => {
    const { url } = await open({});
    const bare = url.split('?')[0] as string;
    expect((await get(bare)).status).toBe(401);
    const other = await open({ port: servicePort === 1 ? 2 : 1 });
    expect((await get(bare, { 'sandboxer-preview-token': other.token as string })).status).toBe(401);
    expect((await get(bare.replace(/^http:\/\/[^.]+/, 'http://3000-aaaaaaaaaaaaaaaaaaaa'))).status).toBe(401);
    expect((await get(bare.replace(/\/\/[^:]+/, '//example.org'))).status).toBe(404);
    const short = await open({ expires_in: '1s' });
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect((await get(short.url)).status).toBe(410);
  });

  it('previews are public only on request', async () => {
    const { url, token } = await open({ public: true });
    expect(token).toBeNull();
    expect((await get(url)).status).toBe(200);
    const forged = url.replace(
      /([a-z2-7])\.localhost/,
      (_all, last: string) => `${last === 'a' ? 'b' : 'a'}.localhost`,
    );
    expect((await get(forged)).status).toBe(404);
  });

  it('previews carry upgraded connections', async () => {
    const { url, token } = await open({});
    const target = new URL(url);
    const socket = connect(Number(target.port), '127.0.0.1');
    socket.write(
      `GET / HTTP/1.1\r\nHost: ${target.host}\r\nConnection: Upgrade\r\nUpgrade: echo\r\nsandboxer-preview-token: ${token}\r\n\r\n`,
    );
    let text = '';
    await new Promise<void>((resolve) => {
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        if (text.includes('\r\n\r\n') && !text.includes('hello')) socket.write('hello');
        if (text.includes('hello')) resolve();
      });
    });
    expect(text).toMatch(/^HTTP\/1.1 101/);
    socket.destroy();
  });

  it('previews answer 502 when nothing listens', async () => {
    const { url, token } = await open({ port: 1 });
    const page = await get(url.split('?')[0] as string, { 'sandboxer-preview-token': token as string });
    expect(page.status).toBe(502);
  });

  it('previews are never served by the API', async () => {
    const { url } = await open({ public: true });
    const page = await client.call('GET', new URL(url).pathname);
    expect(page.status).toBe(404);
  });
});
