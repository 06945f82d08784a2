/** `registry validate` and `registry publish` over HTTP, against a hub that speaks the API of reuse-surface. */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json as jsonOf } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { registryFiles } from '../../src/main/ports/published-registry.ts';
import type { Fixture } from './http/fixture.ts';
import { startFixture } from './http/fixture.ts';

const REGISTRY = join(import.meta.dirname, '../../registry');
const TOKEN = 'token-of-the-hub';
const dir = mkdtempSync(join(tmpdir(), 'sbx-registry-'));

/** Registrations by repository, and every request as it came. */
class Hub {
  readonly repos = new Map<string, Record<string, unknown>>();
  readonly requests: string[] = [];
  index = readFileSync(join(REGISTRY, 'indexes/capabilities.yaml'), 'utf8');
  readonly server: Server = createServer((request, response) => {
    void this.#answer(request).then(([status, text]) => response.writeHead(status).end(text));
  });

  async listen(): Promise<string> {
    await once(this.server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async #answer(request: IncomingMessage): Promise<[number, string]> {
    const { method = '', url = '', headers } = request;
    this.requests.push(`${method} ${url}`);
    if (url === '/raw/capabilities.yaml') return [this.index === '' ? 404 : 200, this.index];
    if (headers.authorization !== `Bearer ${TOKEN}`) return [401, 'no'];
    const body = (await jsonOf(request)) as Record<string, unknown>;
    if (method === 'POST' && url === '/v1/repos') {
      this.repos.set(String(body.repo), body);
      return [201, '{}'];
    }
    const repo = url.slice('/v1/repos/'.length);
    const known = this.repos.get(repo);
    if (method !== 'PATCH' || known === undefined) return [404, '{}'];
    this.repos.set(repo, { ...known, ...body });
    return [200, '{}'];
  }
}

const fixtures: Fixture[] = [];
async function server(reuse_surface?: object): Promise<Fixture> {
  const fixture = await startFixture(reuse_surface === undefined ? {} : { config: { reuse_surface } });
  fixtures.push(fixture);
  return fixture;
}
afterEach(async () => {
  for (const fixture of fixtures.splice(0)) await fixture.close();
});
afterAll(() => rmSync(dir, { recursive: true }));

const publish = (fixture: Fixture) => fixture.call('POST', '/v1/registry/publish');

describe('POST /v1/registry/validate', () => {
  it('registry validate: checks the registry of the server where no files are given', async () => {
    const { json } = await (await server()).call('POST', '/v1/registry/validate', { json: {} });
    expect(json).toEqual({ valid: true, files: (await registryFiles(REGISTRY)).length, problems: [] });
  });

  it('registry validate: checks files against each other', async () => {
    const files = (await registryFiles(REGISTRY)).filter(({ file }) => !file.startsWith('indexes/'));
    const { json } = await (await server()).call('POST', '/v1/registry/validate', { json: { files } });
    expect(json).toMatchObject({
      valid: false,
      problems: [{ problem: expect.stringContaining('No index') }],
    });
  });
});

describe('POST /v1/registry/publish', () => {
  it('registry publish: names the setting where nothing is configured', async () => {
    const { status, json } = await publish(await server());
    expect(status).toBe(422);
    expect(json).toMatchObject({
      code: 'SBX_UNSUPPORTED',
      detail: 'reuse_surface is not configured.',
      remedy: expect.stringContaining('reuse_surface'),
    });
  });

  it('registry publish: a directory gets every file, and a second publication replaces them', async () => {
    const directory = join(dir, 'federation');
    const fixture = await server({ directory });
    for (let time = 0; time < 2; time += 1) {
      const { status, json } = await publish(fixture);
      expect([status, json]).toMatchObject([200, { outcome: 'written', target: directory, status: 'draft' }]);
      expect(await registryFiles(directory)).toEqual(await registryFiles(REGISTRY));
    }
    const { items } = (await fixture.call('GET', '/v1/audit')).json as { items: unknown[] };
    expect(items).toContainEqual(expect.objectContaining({ action: 'publishRegistry', target: directory }));
  });

  it('registry publish: names the setting of a directory that cannot be written', async () => {
    writeFileSync(join(dir, 'file'), '');
    const { status, json } = await publish(await server({ directory: join(dir, 'file', 'below') }));
    expect([status, json]).toMatchObject([
      expect.any(Number),
      { code: 'SBX_PUBLISH_FAILED', field: 'reuse_surface.directory' },
    ]);
  });

  it('registry publish: needs the scope "server"', async () => {
    const fixture = await server({ directory: join(dir, 'never') });
    const { json } = await fixture.call('POST', '/v1/keys', {
      json: { name: 'tenant', scopes: ['read', 'sandboxes'] },
    });
    const headers = { authorization: `Bearer ${(json as { secret: string }).secret}` };
    expect((await fixture.call('POST', '/v1/registry/publish', { headers })).status).toBe(403);
  });

  describe('registry publish to a hub', () => {
    const hub = new Hub();
    const tokenFile = join(dir, 'token');
    let url: string;
    const config = () => ({ url, index_url: `${url}/raw/capabilities.yaml`, token_file: tokenFile });
    beforeAll(async () => {
      url = await hub.listen();
      writeFileSync(tokenFile, `${TOKEN}\n`);
    });
    afterAll(() => hub.server.close());

    it('registry publish: the hub gets a repository once, and changes from then on', async () => {
      const fixture = await server(config());
      expect((await publish(fixture)).json).toMatchObject({ outcome: 'registered', target: url });
      expect((await publish(fixture)).json).toMatchObject({ outcome: 'updated' });
      expect(hub.repos.get('sand-boxer')).toMatchObject({
        repo: 'sand-boxer',
        url: config().index_url,
        domain: 'infotech',
        enabled: true,
      });
    });

    it('registry publish: an index that lists something else is not registered', async () => {
      const { index } = hub;
      for (const wrong of ['', 'capabilities: []\n']) {
        hub.index = wrong;
        hub.requests.length = 0;
        const { json } = await publish(await server(config()));
        expect(json).toMatchObject({
          code: 'SBX_PUBLISH_FAILED',
          remedy: expect.stringContaining('index_url'),
        });
        expect(hub.requests).toEqual(['GET /raw/capabilities.yaml']);
      }
      hub.index = index;
    });

    it('registry publish: a wrong token, an empty one and a hub that is down give different errors', async () => {
      writeFileSync(tokenFile, 'other');
      expect((await publish(await server(config()))).json).toMatchObject({
        code: 'SBX_PUBLISH_FAILED',
        detail: expect.stringContaining('refused our token'),
      });
      writeFileSync(tokenFile, '');
      expect((await publish(await server(config()))).json).toMatchObject({
        code: 'SBX_PUBLISH_FAILED',
        field: 'reuse_surface.token_file',
      });
      const down = { ...config(), index_url: 'http://127.0.0.1:1/x' };
      expect((await publish(await server(down))).json).toMatchObject({
        code: 'SBX_PUBLISH_FAILED',
        detail: expect.stringContaining('gave no answer'),
      });
    });
  });
});
