/** The command line checks cheap preconditions before an upload, and warns of no sandbox that was never made. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/main/config/config.ts';
import type { RunningServer } from '../../src/main/serve.ts';
import { serve } from '../../src/main/serve.ts';
import { createMemoryExtension } from '../../src/testing/memory/memory-extension.ts';
import { TestServer } from '../support/test-server.ts';
import { MEMORY_PROFILE } from './http/fixture.ts';

const CLI = join(import.meta.dirname, '../../src/cli/main.ts');
const home = mkdtempSync(join(tmpdir(), 'sbx-before-'));
const tree = join(home, 'tree');

interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function command(socket: string, ...words: string[]): Promise<Said> {
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    SANDBOXER_STATE_DIR: home,
    SANDBOXER_URL: `unix:${socket}`,
  };
  return await promisify(execFile)(process.execPath, [CLI, ...words], { env }).then(
    (said) => ({ code: 0, ...said }),
    (error: Said) => error,
  );
}

beforeAll(() => {
  mkdirSync(tree);
  writeFileSync(join(tree, 'compose.yaml'), 'services: {web: {image: x}}');
});
afterAll(() => rmSync(home, { recursive: true }));

describe('create with a directory', { timeout: 120_000 }, () => {
  let server: TestServer;
  const create = (...words: string[]) => command(join(server.dir, 'sandboxer.sock'), 'create', ...words);
  const uploads = async () => (await server.expect(200, 'GET', '/v1/uploads')).items;

  beforeAll(async () => {
    server = await TestServer.start();
  });
  afterAll(() => server.close());

  it.each([
    ['compose-e2e', '--input', `repo=${tree}`, 'no host is registered'],
    ['compose-e2e', '--input', `repo_ref=${tree}`, 'no host is registered'],
    ['agent-dev', '--mirror', tree, 'backends can give what was asked'],
  ])('%s %s: nothing is uploaded where there is no route', async (profile, flag, value, why) => {
    const said = await create('--profile', profile, flag, value);
    expect(said).toMatchObject({ code: 4, stderr: expect.stringContaining('SBX_NO_ROUTE') });
    expect(said.stderr).toContain(why);
    expect(await uploads()).toEqual([]);
  });

  it('an input that no backend takes uploads nothing', async () => {
    const said = await create(
      '--profile',
      MEMORY_PROFILE.id,
      '--input',
      `repo=${tree}`,
      '--input',
      'wait_fr=a',
    );
    expect(said.code).not.toBe(0);
    expect(said.stderr).toContain('inputs.wait_fr');
    expect(await uploads()).toEqual([]);
  });

  it('the directory is uploaded where there is a route, and the same request finds its sandbox again', async () => {
    const words = ['--profile', MEMORY_PROFILE.id, '--input', `repo=${tree}`, '--id', 'mine', '--json'];
    const first = JSON.parse((await create(...words)).stdout);
    expect(first).toMatchObject({ state: 'ready', inputs: [{ name: 'repo', source: 'upload' }] });
    expect(await uploads()).toHaveLength(1);
    expect(JSON.parse((await create(...words)).stdout)).toMatchObject({ uid: first.uid, reused: true });
  });

  it('run: the sandbox of a refused request is not said to be left behind', async () => {
    const run = (...words: string[]) => command(join(server.dir, 'sandboxer.sock'), 'run', ...words);
    const refused = await run('--profile', MEMORY_PROFILE.id, '--input', 'wait_fr=a', '--', 'true');
    expect(refused.code).toBe(125);
    expect(refused.stderr).not.toContain('was not destroyed');
  });
});

it('run: nothing is said to be left where no server was reached', { timeout: 60_000 }, async () => {
  const said = await command(join(home, 'nobody.sock'), 'run', '--', 'true');
  expect(said.code).toBe(125);
  expect(said.stderr).toContain('the socket does not exist');
  expect(said.stderr).not.toContain('was not destroyed');
});

describe('smoke', { timeout: 120_000 }, () => {
  const state = mkdtempSync(join(tmpdir(), 'sbx-smoke-'));
  let server: RunningServer;

  beforeAll(async () => {
    const env = {
      SANDBOXER_STATE_DIR: state,
      SANDBOXER_LOG_LEVEL: 'silent',
      SANDBOXER_LOCAL: '0',
      SANDBOXER_DOCKER: '0',
    };
    const extensions = ['ext.memory', 'ext.memory#b'].map((id) => createMemoryExtension({ id, demo: false }));
    server = await serve({ config: loadConfig(env), env, extensions });
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(state, { recursive: true });
  });

  it('smoke: without arguments every healthy backend is tried', async () => {
    const said = await command(server.socketPath as string, 'smoke', '--json');
    const { items } = JSON.parse(said.stdout);
    expect(items).toMatchObject([
      { host: 'local', extension: 'ext.memory', ok: true },
      { host: 'local', extension: 'ext.memory#b', ok: true },
    ]);
    expect(said.code).toBe(0);
  });

  it('smoke: names choose the backends, and an unknown name fails', async () => {
    const socket = server.socketPath as string;
    const one = JSON.parse((await command(socket, 'smoke', 'ext.memory#b', '--json')).stdout);
    expect(one.items.map(({ extension }: { extension: string }) => extension)).toEqual(['ext.memory#b']);
    const none = await command(socket, 'smoke', 'ext.nowhere', '--json');
    expect(none.code).toBe(5);
    expect(JSON.parse(none.stdout).items).toMatchObject([{ extension: 'ext.nowhere', ok: false }]);
  });
});
