import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { ExtensionServices } from '../core/ports/extension.ts';
import { BUILTINS, builtinConfig, builtinExtensions, settingOf } from './builtins.ts';

const FOLDER = import.meta.dirname;
const stateDir = mkdtempSync(join(tmpdir(), 'sbx-builtins-'));
afterAll(() => rmSync(stateDir, { recursive: true, force: true }));
const services: ExtensionServices = {
  stateDir,
  env: {},
  secret: async () => {
    throw new Error('There is no secret.');
  },
};
const off = { enabled: false };

/** Returns the files of src/extensions/ that are loaded with the list, before any extension is created. */
function loadedWithTheList(): string[] {
  const script = `
    import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) { console.log(url); return next(url, context); } });
    await import(${JSON.stringify(join(FOLDER, 'builtins.ts'))});`;
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', script],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(stderr);
  return stdout
    .split('\n')
    .filter((url) => url.startsWith('file:'))
    .map((url) => relative(FOLDER, new URL(url).pathname))
    .filter((path) => !path.startsWith('..'));
}

describe('built-in extensions', () => {
  it('list: ids and settings are unique', () => {
    expect(Object.keys(builtinConfig())).toEqual(['local', 'docker', 'compose_ssh', 'ssh', 'saas_stub']);
    expect(BUILTINS.map(({ id }) => settingOf(id))).toEqual(Object.keys(builtinConfig()));
  });

  it('list: loading it loads no module that does IO', () => {
    const loaded = loadedWithTheList();
    expect(loaded).toContain('docker/handle.ts');
    expect(
      loaded.filter((path) => /extension\.ts$|create\.ts$|client|session|spawner|ssh-host/.test(path)),
    ).toEqual([]);
    expect(loaded.length).toBeLessThan(30);
  });

  it.each(BUILTINS)('$id: its configuration accepts nothing at all', ({ config }) => {
    expect(config.safeParse(undefined).success).toBe(true);
  });

  it('create: what is turned off is not made', async () => {
    const config = { local: off, docker: off, compose_ssh: off, ssh: off, saas_stub: {} };
    const parsed = Object.fromEntries(
      Object.entries(builtinConfig()).map(([name, schema]) => [
        name,
        schema.parse(config[name as keyof typeof config]),
      ]),
    );
    expect(await builtinExtensions(parsed as never, services)).toEqual([]);
  });

  it.each([
    ['ext.compose-ssh', { enabled: true }, ['ext.compose-ssh']],
    ['ext.ssh', { enabled: true }, ['ext.ssh']],
    ['ext.local', { enabled: true }, ['ext.local']],
    [
      'ext.saas-stub',
      { default: { url: 'http://127.0.0.1:1' }, b: { url: 'http://127.0.0.1:1' } },
      ['ext.saas-stub', 'ext.saas-stub#b'],
    ],
  ])('create: %s has the header of its definition', async (id, given, ids) => {
    const definition = BUILTINS.find((each) => each.id === id) as (typeof BUILTINS)[number];
    const made = await definition.create(definition.config.parse(given) as never, services);
    expect(made.map(({ header }) => header.id)).toEqual(ids);
    for (const extension of made) {
      const { title, handleVersion } = extension.header;
      expect({ title, handleVersion }).toEqual({
        title: definition.title,
        handleVersion: definition.handle.version,
      });
      await extension.close?.();
    }
  });

  it('create: SANDBOXER_STUB_URL takes the place of the default instance', async () => {
    const stub = BUILTINS[4];
    const env = { SANDBOXER_STUB_URL: 'http://127.0.0.1:1' };
    const made = await stub.create({}, { ...services, env });
    expect(made.map(({ header }) => header.id)).toEqual(['ext.saas-stub']);
  });

  it.each([
    ['ext.local', { SANDBOXER_LOCAL: '0' }],
    ['ext.docker', { SANDBOXER_DOCKER: '0', DOCKER_HOST: 'unix:///nonexistent.sock' }],
  ])('create: %s is turned off by the environment', async (id, env) => {
    const definition = BUILTINS.find((each) => each.id === id) as (typeof BUILTINS)[number];
    const config = definition.config.parse({ enabled: true }) as never;
    expect(await definition.create(config, { ...services, env })).toEqual([]);
  });
});
