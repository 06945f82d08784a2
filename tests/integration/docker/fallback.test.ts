/** Where the agent cannot be mounted or cannot run, a lesser channel is taken, and the sandbox says so. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DockerWorld, output } from '../../support/docker-world.ts';
import type { Dockerd } from '../../support/dockerd.ts';
import { startDockerd, whyNoDockerd } from '../../support/dockerd.ts';

const whyNot = whyNoDockerd();
const AGENT = join(import.meta.dirname, '..', '..', '..', 'agent', 'build', 'sandboxer-agent');

describe.skipIf(whyNot !== null)(
  `a lesser channel of ext.docker${whyNot ? ` (${whyNot})` : ''}`,
  { timeout: 120_000 },
  () => {
    let engine: Dockerd;
    beforeAll(async () => {
      engine = await startDockerd();
    });
    afterAll(async () => engine?.close());

    async function channelOf(world: DockerWorld, living: Parameters<DockerWorld['inspect']>[0]) {
      const { Config } = (await world.inspect(living)) as { Config: { Labels: Record<string, string> } };
      return Config.Labels['io.sandboxer.channel'];
    }

    it('an image for another processor is used through the engine’s own exec', async () => {
      // What it says of itself is what counts; that its programs run here is what makes this a test.
      const archive = join(engine.directory, 'other.tar');
      await engine.docker('save', '--output', archive, engine.image);
      const text = readFileSync(archive, 'latin1');
      const other = text
        .replaceAll('"architecture":"amd64"', '"architecture":"arm64"')
        .replaceAll('sandboxer-test/busybox', 'sandboxer-test/sparbox');
      writeFileSync(archive, other, 'latin1');
      await engine.docker('load', '--input', archive);
      const world = new DockerWorld(engine, {});
      await world.open();
      const spec = world.spec({ image: 'sandboxer-test/sparbox:1' });
      const handle = await world.extension.provision(spec, world.context);
      const { notes } = await world.extension.waitReady(handle, world.context);
      expect(notes.join(' ')).toContain('cannot take the agent');
      const living = await world.reach(spec, handle);
      expect(await channelOf(world, living)).toBe('exec');
      expect(await output(living.session, 'id -u; pwd; echo kept > file')).toBe('1000\n/workspace');
      expect((await living.session.files?.stat('file'))?.size).toBe(5);
      expect(living.session.attach).toBeUndefined();
      expect(living.session.dial).toBeUndefined();
      const forkSpec = world.spec({ image: 'sandboxer-test/sparbox:1' });
      const fork = await world.reach(forkSpec, await world.extension.fork(handle, forkSpec, world.context));
      expect(await output(fork.session, 'cat file')).toBe('kept');
      const own = await world.establish();
      expect(await channelOf(world, own)).toBe('call');
      for (const each of [living, fork, own]) await world.end(each);
      await world.extension.close();
      expect(await engine.docker('ps', '-aq')).toBe('');
    });

    it('an agent that starts and does not live is done without, from then on', async () => {
      const agent = join(engine.directory, 'dies');
      writeFileSync(agent, '#!/bin/sh\nexit 3\n', { mode: 0o755 });
      const world = new DockerWorld(engine, { agent }, 'short-lived');
      await world.open();
      const secrets = [{ name: 'TOKEN', delivery: 'env' as const, value: 'told' }];
      const secretRefs = [{ name: 'TOKEN', delivery: 'env' as const, provider: 'env' }];
      const first = await world.establish({ secretRefs }, { secrets });
      expect(await channelOf(world, first)).toBe('exec');
      expect(await output(first.session, 'echo $TOKEN')).toBe('told');
      const spec = world.spec();
      const handle = await world.extension.provision(spec, world.context);
      // Not tried again with it: the first container is the one.
      expect(await channelOf(world, { handle })).toBe('exec');
      const { notes } = await world.extension.waitReady(handle, world.context);
      expect(notes.join(' ')).toContain('cannot take the agent');
      await world.end(first);
      await world.extension.teardown({ stamp: spec.stamp, handle }, world.context);
      await world.extension.close();
      expect(await engine.docker('ps', '-aq')).toBe('');
    });

    it('an agent that cannot be started where it is mounted from is put into the image', async () => {
      const agent = join(engine.directory, 'agent');
      writeFileSync(agent, readFileSync(AGENT), { mode: 0o644 });
      const world = new DockerWorld(engine, { agent }, 'not-executable');
      await world.open();
      const secrets = [{ name: 'TOKEN', delivery: 'env' as const, value: 'told' }];
      const secretRefs = [{ name: 'TOKEN', delivery: 'env' as const, provider: 'env' }];
      const living = await world.establish({ secretRefs }, { secrets });
      expect(await channelOf(world, living)).toBe('relay');
      expect(await output(living.session, 'echo $TOKEN')).toBe('told');
      await world.end(living);
      await world.extension.close();
      expect(await engine.docker('ps', '-aq')).toBe('');
    });
  },
);
