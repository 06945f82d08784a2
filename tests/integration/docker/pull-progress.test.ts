/** How far a pull is, as clients see it: a real server, a real engine, and a registry that takes its time. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SandboxerClient } from '../../../src/client/sandboxer-client.ts';
import type { CloudEvent } from '../../../src/contract/events/event.ts';
import type { DockerServer } from '../../support/docker-server.ts';
import { startDockerServer } from '../../support/docker-server.ts';
import type { Dockerd } from '../../support/dockerd.ts';
import { startDockerd, whyNoDockerd } from '../../support/dockerd.ts';
import { Registry } from '../../support/registry.ts';

const run = promisify(execFile);
const whyNot = whyNoDockerd();
const PASSWORD = 'fetched-for-each-pull';
const CLI = join(import.meta.dirname, '../../../src/cli/main.ts');
const PROFILE = {
  id: 'profile.pulled',
  version: '1.0.0',
  isolation: { level: 'container' },
  image: 'sandboxer-test/busybox:1',
} as const;

describe.skipIf(whyNot !== null)(
  `a pull that takes a while${whyNot ? ` (${whyNot})` : ''}`,
  { timeout: 120_000 },
  () => {
    const registry = new Registry({ login: { username: 'puller', password: PASSWORD }, asks: 'token' });
    let engine: Dockerd;
    let world: DockerServer;
    let client: SandboxerClient;
    let image: string;

    beforeAll(async () => {
      engine = await startDockerd({ link: true, config: { 'insecure-registries': ['10.0.0.0/8'] } });
      const host = `${engine.address.replace(/\.2$/, '.1')}:${await registry.open()}`;
      image = `${host}/team/tool@${registry.digest}`;
      const password = { provider: 'env', key: 'PULL_PASSWORD' };
      const docker = {
        url: `unix://${engine.socket}`,
        images: { allow: ['*', `${host}/team/*`], require_digest: false },
        registries: { [host]: { username: 'puller', password } },
      };
      world = await startDockerServer(docker, { SANDBOXER_SECRET_PULL_PASSWORD: PASSWORD });
      client = world.client;
      await client.profiles.push({ ...PROFILE, overridable: ['image'] });
      registry.paceMs = 400;
    });

    afterAll(async () => {
      await world.close();
      registry.close();
      await engine.close();
    });

    async function eventsOf(id: string): Promise<CloudEvent[]> {
      const events: CloudEvent[] = [];
      for await (const event of client.events.list({ sandbox: id })) events.push(event);
      return events;
    }

    async function forget(): Promise<void> {
      const images = await engine.docker('images', '-aq');
      await engine.docker('rmi', '--force', ...new Set(images.split('\n')));
      await engine.importImage(engine.image);
    }

    it('a slow pull reports its progress to all its waiters, in few events, before they are ready', async () => {
      const two = await Promise.all(
        ['first', 'second'].map((id) => client.sandboxes.create({ id, profile: PROFILE.id, image })),
      );
      for (const { sandbox_id } of two) {
        const events = await eventsOf(sandbox_id);
        const told = events.filter(({ type }) => type === 'sandbox.progress');
        const details = told.map(({ data }) => data.details);
        expect(details.at(-1)).toMatchObject({
          stage: 'pull',
          subject: image,
          phase: 'done',
          extension: 'ext.docker',
          bytes: { done: registry.bytes, total: registry.bytes },
          parts: { done: 2, total: 2 },
        });
        const going = details.filter(({ phase }) => phase === 'going');
        expect(going.length).toBeGreaterThan(0);
        const took = Date.parse(told.at(-1)?.time ?? '') - Date.parse(told[0]?.time ?? '');
        expect(going.length).toBeLessThanOrEqual(Math.ceil(took / 1000) + 1);
        const types = events.map(({ type }) => type);
        expect(types.lastIndexOf('sandbox.progress')).toBeLessThan(types.indexOf('sandbox.ready'));
        expect(JSON.stringify(events)).not.toContain(PASSWORD);
      }
      const asked = registry.asked.length;
      const third = await client.sandboxes.create({ profile: PROFILE.id, image });
      expect(registry.asked.length).toBe(asked);
      const said = (await eventsOf(third.sandbox_id)).map(({ type }) => type);
      expect(said).not.toContain('sandbox.progress');
      for (const { sandbox_id } of [...two, third]) await client.sandboxes.destroy(sandbox_id);
    });

    it('a slow pull is shown in a terminal, and leaves nothing there', async () => {
      await forget();
      const { PATH = '' } = process.env;
      const words = ['create', '--profile', PROFILE.id, '--image', image, '--id', 'seen'];
      const command = [process.execPath, CLI, '--url', `unix:${world.server.socketPath}`, ...words].join(' ');
      const { stdout } = await run('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
        env: { PATH, HOME: world.dir, SANDBOXER_STATE_DIR: world.dir, TERM: 'xterm' },
      });
      expect(stdout).toMatch(/Pulling [\d.]+ \w+ of [\d.]+ \w+, \d of 2 layers: \S+\/team\/tool@sha256:/);
      expect(stdout).toContain('seen');
      const last = stdout.slice(stdout.lastIndexOf('\x1b[2K'));
      expect(last).not.toContain('Pulling');
      expect((await client.sandboxes.get('seen')).state).toBe('ready');
      await client.sandboxes.destroy('seen');
    });
  },
);
