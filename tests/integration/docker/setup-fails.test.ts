/** A setup command that fails is the request's own fault: no other backend is tried with it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/main/config/config.ts';
import { temporaryDir } from '../../support/child-server.ts';
import type { Dockerd } from '../../support/dockerd.ts';
import { startDockerd, whyNoDockerd } from '../../support/dockerd.ts';
import { LocalServer } from '../../support/local-server.ts';

const whyNot = whyNoDockerd();
const BOTH = ['ext.local', 'ext.docker'];

describe.skipIf(whyNot !== null)('setup on ext.local and ext.docker', { timeout: 180_000 }, () => {
  let engine: Dockerd;
  let world: LocalServer;

  beforeAll(async () => {
    engine = await startDockerd();
    const dir = temporaryDir();
    const env = { SANDBOXER_STATE_DIR: dir, SANDBOXER_LOG_LEVEL: 'silent' };
    const docker = { url: `unix://${engine.socket}`, default_image: engine.image };
    const { extensions } = loadConfig(env, { extensions: { docker } });
    world = await LocalServer.start(() => ({ extensions }), dir);
    await world.client.profiles.push({
      id: 'profile.fails',
      version: '1.0.0',
      setup: { run: ['echo looked >&2; exit 3'] },
    });
  });
  afterAll(async () => {
    await world?.close();
    await engine?.close();
  });

  it.each([BOTH, BOTH.toReversed()])('setup fails on %s: %s is not tried', async (first, second) => {
    const { sandboxes, routes } = world.client;
    const request = { profile: 'profile.fails', route: { order: [first, second] } };
    const { candidates } = await routes.resolve(request);
    // Otherwise the second would not have been tried anyway.
    expect(candidates.filter(({ rank }) => rank !== null).map(({ extension }) => extension)).toEqual([
      first,
      second,
    ]);
    const id = `fails-on-${first.slice(4)}`;
    const error = await sandboxes.create({ ...request, id }, { wait: 'ready' }).catch((reason) => reason);
    expect(error).toMatchObject({
      code: 'SBX_SETUP_FAILED',
      status: 422,
      retryable: false,
      backend: first,
      field: 'setup.run[0]',
    });
    expect(error.detail).toContain('ended with 3: looked');
    const { attempts } = await sandboxes.route(id);
    expect(attempts.map(({ extension }) => extension)).toEqual([first]);
    expect(await engine.docker('ps', '-aq')).toBe('');
  });
});
