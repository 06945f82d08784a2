/** `extensions.packages`: the package of docs/contributing/add-an-extension.md, packed, installed, loaded and routed to. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerClient } from '../../src/client/sandboxer-client.ts';
import type { Extension } from '../../src/core/ports/extension.ts';
import { StackRefusal } from '../../src/extensions/compose-ssh/compose/yaml/finding.ts';
import { packagedExtensions } from '../../src/extensions/load-packages.ts';
import { loadConfig } from '../../src/main/config/config.ts';
import type { RunningServer } from '../../src/main/serve.ts';
import { serve } from '../../src/main/serve.ts';
import { formatReport, isConforming, runConformance } from '../../src/testing/index.ts';
import { removeDir, temporaryDir } from '../support/child-server.ts';
import { install, pack, packageOfTheGuide } from '../support/packed-extension.ts';

const OFF = ['local', 'docker', 'compose_ssh'].map((name) => `  ${name}: { enabled: false }`).join('\n');
const dir = temporaryDir();
let folder: string;

beforeAll(() => {
  folder = install(dir, pack(dir, packageOfTheGuide()));
}, 60_000);
afterAll(() => removeDir(dir));

const services = (stateDir: string) => ({
  stateDir,
  env: {},
  secret: async () => {
    throw new Error('There is no secret.');
  },
});
const load = (entry: Parameters<typeof packagedExtensions>[0][number], ...folders: readonly string[]) =>
  packagedExtensions([entry], { folders: [...folders, folder], services: services(join(dir, 'state')) });

describe('a server with a package', () => {
  let server: RunningServer;
  let client: SandboxerClient;

  beforeAll(async () => {
    const path = join(folder, 'config.yaml');
    writeFileSync(path, `extensions:\n  packages: [acme-folders]\n${OFF}\n`);
    const env = {
      SANDBOXER_CONFIG: path,
      SANDBOXER_STATE_DIR: join(dir, 'state'),
      SANDBOXER_LOG_LEVEL: 'silent',
    };
    server = await serve({ config: loadConfig(env), env });
    client = new SandboxerClient({ url: `unix:${server.socketPath}` });
    await client.profiles.push({
      id: 'profile.stub-folders',
      version: '1.0.0',
      extension: 'ext.acme-folders',
      isolation: { level: 'none' },
      network: { default: 'allow' },
    });
  }, 60_000);
  afterAll(async () => {
    client?.close();
    await server?.stop();
  });

  it('extensions: it is listed, healthy, with the version of its handles', async () => {
    const { items } = await client.extensions.list();
    expect(items).toMatchObject([
      { id: 'ext.acme-folders', title: 'Folders of ACME', handle_version: 2, health: { status: 'healthy' } },
    ]);
  });

  it('create and destroy: a sandbox is routed to it, and its folder goes with it', async () => {
    const folders = () => readdirSync(join(dir, 'state', 'acme-folders'));
    const made = await client.sandboxes.create({ profile: 'profile.stub-folders' }, { wait: 'ready' });
    expect(made).toMatchObject({ state: 'ready', extension: 'ext.acme-folders' });
    expect(folders()).toHaveLength(1);
    await client.sandboxes.destroy(made.sandbox_id);
    expect(folders()).toEqual([]);
  });
});

describe('its methods', () => {
  let extension: Extension;
  beforeAll(async () => {
    [extension] = (await load('acme-folders')) as [Extension];
  });
  const ctx = { signal: new AbortController().signal } as never;

  it('handle: an older handle is upgraded, a newer handle is refused', async () => {
    const at = join(dir, 'state', 'acme-folders', 'att_1');
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, 'stamp.json'), '{ "owner": "own_1" }');
    await extension.waitReady({ version: 1, data: { folder: 'att_1' } }, ctx);
    const newer = extension.waitReady({ version: 3, data: { folder: 'att_1' } }, ctx);
    await expect(newer).rejects.toThrow(/versions up to 2 are read here/);
  });

  it('errors: a SandboxerError of the package is a SandboxerError here', async () => {
    const { SandboxerError } = await import('../../src/contract/errors/errors.ts');
    const error = await extension.waitReady({ version: 1, data: { folder: 'none' } }, ctx).catch((e) => e);
    expect(error.constructor).not.toBe(SandboxerError);
    expect(error).toBeInstanceOf(SandboxerError);
    expect(error).not.toBeInstanceOf(StackRefusal);
    expect(error).toMatchObject({ code: 'SBX_BACKEND_LOST' });
  });

  it('conformance: it does what its vector declares', async () => {
    const create = async () => ({ extension, cleanup: async () => {} });
    const report = await runConformance({ create, shell: false });
    expect(isConforming(report), formatReport(report)).toBe(true);
  });

  it('config: its own schema is asked', async () => {
    const elsewhere = join(dir, 'elsewhere');
    const [made] = await load({ name: 'acme-folders', config: { folder: elsewhere } });
    expect((await made?.probe({ clock: { now: () => 0 } } as never))?.detail).toBe(`below ${elsewhere}`);
  });

  it('path: a package is loaded by the absolute path of its folder', async () => {
    expect(await load(join(folder, 'node_modules', 'acme-folders'))).toHaveLength(1);
  });
});

describe('packages that are refused', () => {
  const GOOD = packageOfTheGuide()['index.js'] as string;
  let count = 0;

  /** A package beside the good one, with another text. */
  function written(index: string): string {
    count += 1;
    const at = join(folder, 'node_modules', `wrong-${count}`);
    mkdirSync(at);
    writeFileSync(join(at, 'package.json'), '{ "type": "module", "exports": { "import": "./index.js" } }');
    writeFileSync(join(at, 'index.js'), index);
    return `wrong-${count}`;
  }
  const withId = (id: string) => GOOD.replace("'ext.acme-folders'", JSON.stringify(id));

  it.each([
    ['no default export', 'export const x = 1;', /has no definition as its default export/],
    [
      'a definition without its functions',
      'export default { id: "ext.a", title: "A" };',
      /not valid: config/,
    ],
    ['a bad id', withId('Acme'), /not valid: id: Write an id such as "ext\.acme-cells"/],
    [
      'the id of a built-in extension',
      withId('ext.docker'),
      /is the id of an extension of sand-boxer itself/,
    ],
    ['a module that fails', 'throw new Error("no licence");', /cannot be loaded: no licence/],
    [
      'a header of another id',
      GOOD.replace('id: ID,\n      title', 'id: "ext.other",\n      title'),
      /made "ext\.other"/,
    ],
  ])('package: %s is refused by field, with the remedy', async (_what, index, detail) => {
    const error = await load(written(index)).catch((reason) => reason);
    expect(error).toMatchObject({
      code: 'SBX_CONFIG_INVALID',
      detail: expect.stringMatching(detail),
      remedy: expect.stringMatching(/\w+/),
      extras: { field: 'extensions.packages[0]' },
    });
  });

  it('package: a name that is not installed is refused with where to install it', async () => {
    await expect(load('acme-nothing')).rejects.toMatchObject({
      detail: expect.stringContaining('there is no package "acme-nothing"'),
      remedy: expect.stringContaining(`Install it in ${folder}`),
    });
  });

  it('package: the same extension twice is refused', async () => {
    const twice = packagedExtensions(['acme-folders', 'acme-folders'], {
      folders: [folder],
      services: services(dir),
    });
    await expect(twice).rejects.toMatchObject({ extras: { field: 'extensions.packages[1]' } });
  });

  it('config: what its schema refuses is refused by field', async () => {
    const wrong = load({ name: 'acme-folders', config: { folder: 7 } });
    await expect(wrong).rejects.toMatchObject({ extras: { field: 'extensions.packages[0].config.folder' } });
  });

  it('serve: a wrong package keeps the server from starting', async () => {
    const env = { SANDBOXER_STATE_DIR: join(dir, 'refused'), SANDBOXER_LOG_LEVEL: 'silent' };
    const config = loadConfig(env, { extensions: { packages: ['acme-nothing'] } });
    await expect(serve({ config, env })).rejects.toMatchObject({ code: 'SBX_CONFIG_INVALID' });
  });

  it.each(['../up', './here', 'a b', ''])('packages: %j is no name', (name) => {
    expect(() => loadConfig({}, { extensions: { packages: [name] } })).toThrow(/extensions\.packages\[0\]/);
  });
});
