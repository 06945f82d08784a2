/** A spawner that leaves, for another build or because it is told to: at once, whatever it was at, and the next one goes on. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { SpawnerClient } from '../../../src/extensions/local/engine/spawner-client.ts';
import { LocalWorld, shell } from '../../security/local-world.ts';
import { holdAtWork, hugeTrash } from './huge-trash.ts';
import { childrenOf, hold, stateOf, until } from './killable-server.ts';

const world = new LocalWorld({ launchers: 2, warm: 0 });
const reason = await world.whyNot();
const LIMIT_MS = 120_000;
/** Nobody waits longer than this for the next one. */
const SOON = { ms: 5_000 };

const connected = () => SpawnerClient.open(join(world.base, 'spawner.sock'), () => {});
const gone = (pid: number) => until('it has left', () => stateOf(pid) === '' || null, SOON);

async function retire(): Promise<number> {
  const pid = await world.spawnerPid();
  const client = await connected();
  await client.call('retire').catch(() => {});
  client.close();
  return pid;
}

describe.skipIf(reason !== null)(`a spawner that leaves${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(() => world.close(), LIMIT_MS);

  it(
    'a spawner that leaves does not wait for paused sandboxes: the next one resumes them',
    async () => {
      const living = await world.establish();
      await world.extension.pause(living.handle);
      await gone(await retire());
      await world.extension.resume(living.handle);
      expect((await shell(living.session, 'echo here')).stdout).toBe('here\n');
      await world.end(living);
    },
    LIMIT_MS,
  );

  it(
    'a repeatable request to a spawner that leaves is answered by the next one',
    async () => {
      const living = await world.establish();
      const asked = async (what: () => Promise<unknown>) => {
        const pid = await world.spawnerPid();
        await hold(pid);
        const answer = what();
        await sleep(50);
        process.kill(pid, 'SIGKILL');
        await answer;
      };
      await asked(() => world.extension.pause(living.handle));
      const client = await connected();
      expect(await client.call('status', { id: living.spec.stamp.attemptId })).toMatchObject({ frozen: '1' });
      client.close();
      await asked(() => world.extension.resume(living.handle));
      expect((await shell(living.session, 'echo here')).stdout).toBe('here\n');
      await asked(() => world.end(living));
    },
    LIMIT_MS,
  );

  it(
    'a spawner that leaves thaws what was frozen for a copy, before the next one starts',
    async () => {
      const living = await world.establish();
      await shell(living.session, 'sleep 600 >/dev/null 2>&1 & seq 3000 | split -l 1 -a 3');
      const pid = await world.spawnerPid();
      const client = await connected();
      mkdirSync(join(world.base, 'layers', 'cut'));
      const asked = client.call('capture', { id: living.spec.stamp.attemptId, to: 'layers/cut', seal: 0 });
      const copied = asked.then(
        () => 'whole',
        () => 'cut off',
      );
      const copy = () => childrenOf(pid, 'sbx-copy')[0] ?? null;
      await hold(await until('it is copied', copy, { every: 0 }));
      process.kill(pid, 'SIGTERM');
      await gone(pid);
      expect(await copied).toBe('cut off');
      client.close();
      expect(existsSync(join(world.base, 'spawner.sock'))).toBe(false);
      expect((await shell(living.session, 'echo here')).stdout).toBe('here\n');
      await world.end(living);
    },
    LIMIT_MS,
  );

  it(
    'a spawner that leaves does not wait until the trash is empty: the next one goes on with it',
    async () => {
      await world.end(await world.establish());
      const huge = hugeTrash(world.base);
      // Whatever is thrown away wakes the janitor.
      await world.end(await world.establish());
      await holdAtWork(await world.spawnerPid(), huge);
      await gone(await retire());
      expect(existsSync(huge)).toBe(true);
      await world.end(await world.establish());
      await until('the trash is empty', () => !existsSync(huge) || null);
    },
    LIMIT_MS,
  );
});

describe.skipIf(reason !== null)('a spawner that is killed before it has noted an agent that is up', () => {
  it(
    'a spawner killed before it noted a running agent leaves no agent behind, also without control groups',
    async () => {
      const poor = new LocalWorld({ cgroups: false, launchers: 1, warm: 0 });
      const first = await poor.establish();
      const control = join(poor.base, 'spawner.sock');
      const pid = await poor.spawnerPid();
      const client = await SpawnerClient.open(control, (word) => {
        if (word === 'started') process.kill(pid, 'SIGSTOP');
      });
      const known = Number((await client.call('status', { id: first.spec.stamp.attemptId })).pid);
      const making = poor.extension.provision(poor.spec(), poor.context).catch(() => {});
      const name = readFileSync(`/proc/${known}/comm`, 'utf8').trim();
      const born = () => childrenOf(pid, name).find((one) => one !== known) ?? null;
      const agent = await until('its agent is up', born);
      // Nobody can see that it has reported.
      await sleep(300);
      expect([stateOf(pid), stateOf(agent)]).toEqual(['T', 'S']);
      process.kill(pid, 'SIGKILL');
      await until('it has ended', () => stateOf(agent) === '' || null, SOON);
      await making;
      client.close();
      expect((await shell(first.session, 'echo here')).stdout).toBe('here\n');
      await poor.end(first);
      await poor.close();
    },
    LIMIT_MS,
  );
});
