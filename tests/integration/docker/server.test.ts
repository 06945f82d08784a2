/** Containers as clients of the server meet them: shared by scope, and resumed after the engine was restarted. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DockerServer } from '../../support/docker-server.ts';
import { startDockerServer } from '../../support/docker-server.ts';
import type { Dockerd } from '../../support/dockerd.ts';
import { startDockerd, whyNoDockerd } from '../../support/dockerd.ts';
import { until } from '../../support/test-server.ts';

const whyNot = whyNoDockerd();

describe.skipIf(whyNot !== null)(
  `ext.docker through the server${whyNot ? ` (${whyNot})` : ''}`,
  { timeout: 120_000 },
  () => {
    const vault = mkdtempSync(join(tmpdir(), 'sbx-vault-'));
    let engine: Dockerd;
    let world: DockerServer;

    beforeAll(async () => {
      engine = await startDockerd();
      const docker = { url: `unix://${engine.socket}`, default_image: engine.image };
      world = await startDockerServer(docker, {}, (config) => ({
        timing: { ...config.timing, reconcile: 500 },
        secrets: { ...config.secrets, directory: vault },
      }));
      const base = { version: '1.0.0', extension: 'ext.docker' };
      const secret_refs = [{ name: 'TOKEN', provider: 'file', delivery: 'env' as const }];
      const setup = { secret_refs };
      await world.client.profiles.push({ ...base, id: 'profile.plain' });
      await world.client.profiles.push({
        ...base,
        id: 'profile.armed',
        persistence: 'persistent',
        setup,
      });
    });

    afterAll(async () => {
      await world.close();
      await engine.close();
      rmSync(vault, { recursive: true });
    });

    const containers = async () => (await engine.docker('ps', '-q')).split('\n').filter(Boolean);
    const inside = async (id: string, command: string) =>
      (await world.client.exec(id, { command }).result()).stdout;

    it('a container serves all of a scope, and no request outside it', async () => {
      const { sandboxes } = world.client;
      const of = (session: string) => ({ harness: 'tests', session_id: session });
      const ask = (session: string, more: object = {}) =>
        sandboxes.create({ profile: 'profile.plain', scope: 'session', consumer: of(session), ...more });
      const burst = await Promise.all([ask('one'), ask('one'), ask('one')]);
      const [first] = burst;
      expect(new Set(burst.map(({ uid }) => uid)).size).toBe(1);
      expect(await containers()).toHaveLength(1);
      await inside(first?.sandbox_id ?? '', 'echo shared > file');
      expect(await inside((await ask('one')).sandbox_id, 'cat file')).toBe('shared\n');
      const other = await ask('two');
      const own = await ask('one', { id: 'of-its-own' });
      expect(new Set([first?.uid, other.uid, own.uid]).size).toBe(3);
      expect(await containers()).toHaveLength(3);
      expect(await inside(other.sandbox_id, 'ls')).toBe('');
      await sandboxes.destroy(first?.sandbox_id ?? '');
      const next = await ask('one');
      expect(next.uid).not.toBe(first?.uid);
      expect(await inside(next.sandbox_id, 'ls')).toBe('');
      for (const { sandbox_id } of [other, own, next]) await sandboxes.destroy(sandbox_id);
      expect(await containers()).toEqual([]);
    });

    it('a sandbox that stopped with the engine is paused, and resumed with its current secrets', async () => {
      const { sandboxes } = world.client;
      const keep = (value: string) => writeFileSync(join(vault, 'TOKEN'), value, { mode: 0o600 });
      keep('first');
      const { sandbox_id } = await sandboxes.create({ profile: 'profile.armed' });
      expect(await inside(sandbox_id, 'echo $TOKEN; echo precious > file')).toBe('first\n');
      await engine.restartDaemon();
      await until('it is found stopped', async () => {
        const { state, pause_kind } = await sandboxes.get(sandbox_id);
        return state === 'paused' && pause_kind === 'stopped';
      });
      keep('second');
      await sandboxes.resume(sandbox_id);
      expect(await inside(sandbox_id, 'cat file; echo $TOKEN')).toBe('precious\nsecond\n');
      await sandboxes.destroy(sandbox_id);
      expect(await engine.docker('ps', '-aq')).toBe('');
    });
  },
);
