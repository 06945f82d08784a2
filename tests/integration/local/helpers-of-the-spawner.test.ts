/** Those who help the spawner: keepers, of whom sandboxes are born in their group, and mounters. Any of them may be killed. */
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SpawnerClient } from '../../../src/extensions/local/engine/spawner-client.ts';
import { findHostFacts } from '../../../src/extensions/local/host/host-facts.ts';
import type { Living } from '../../security/local-world.ts';
import { LocalWorld, shell } from '../../security/local-world.ts';
import { until } from '../../support/until.ts';
import { childrenOf, names, signal, stateOf } from './killable-server.ts';

/** Few, so that the same groups come round again. */
const world = new LocalWorld({ launchers: 2, warm: 0 });
const { controllers, unified } = findHostFacts({ directory: world.base });
const reason =
  (await world.whyNot()) ?? (controllers.includes('pids') ? null : 'no controller counts processes here');
const LIMIT_MS = 120_000;
const PIDS = 24;

const nameOf = (pid: number) => {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
};

/** What the one who writes a disk out has open, besides what is said to everybody; it is there for a moment. */
function seeFlush(spawner: number, begin: () => Promise<unknown>): string[] | null {
  begin().catch(() => {});
  for (const end = Date.now() + 1_000; Date.now() < end; ) {
    const [pid] = childrenOf(spawner, 'sbx-flush');
    if (pid === undefined) continue;
    signal(pid, 'SIGSTOP');
    try {
      const numbers = names(`/proc/${pid}/fd`).filter((fd) => Number(fd) > 2);
      const open = numbers.map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
      if (stateOf(pid) !== '') return open;
    } catch {
      // It ended before it could be stopped.
    } finally {
      signal(pid, 'SIGCONT');
    }
  }
  return null;
}

async function helpers(name: string): Promise<number[]> {
  const spawner = await world.spawnerPid();
  return readFileSync(`/proc/${spawner}/task/${spawner}/children`, 'utf8')
    .split(' ')
    .map(Number)
    .filter((pid) => pid > 0 && nameOf(pid) === name);
}

const limited = (memory_mb: number | null = null) =>
  world.establish({ resources: { ...world.spec().recipe.resources, pids: PIDS, memory_mb } });

async function processes({ spec }: Living): Promise<number> {
  const spawner = await SpawnerClient.open(join(world.base, 'spawner.sock'), () => {});
  const { pids } = await spawner.call('status', { id: spec.stamp.attemptId });
  spawner.close();
  return Number(pids);
}

/** Has as many processes as it may, and tells how many the kernel counts. */
async function crowd(living: Living): Promise<number> {
  // The runtime leaves when the agent has answered, not before.
  await until(async () => (await processes(living)) === 1);
  await shell(living.session, `for i in $(seq ${PIDS * 2}); do sleep 600 >/dev/null 2>&1 & done`);
  return await processes(living);
}

async function lives(memoryMb: number | null = null): Promise<void> {
  const living = await limited(memoryMb);
  expect((await shell(living.session, 'echo well')).stdout).toBe('well\n');
  // The shell that could not start another one has ended.
  expect(await crowd(living)).toBe(PIDS - 1);
  await world.end(living);
}

describe.skipIf(reason !== null)(`helpers of the spawner${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(() => world.close(), LIMIT_MS);

  it(
    'helpers of the spawner count for no sandbox: each has its full number of processes, whatever ran in its group before',
    async () => {
      for (let round = 0; round < 6; round++) await lives();
      expect((await helpers('sbx-keeper')).length).toBeGreaterThan(0);
    },
    LIMIT_MS,
  );

  it(
    'helpers of the spawner leave the limits of a group in force: the next sandbox may have more, less or none',
    async () => {
      for (const memoryMb of [80, 400, 80, null, 100, 64, 800, 64, null, 20, 400]) {
        await lives(memoryMb);
        await lives(memoryMb);
        await lives(memoryMb);
      }
    },
    LIMIT_MS,
  );

  it(
    'helpers of the spawner that are killed are replaced: the next sandbox starts within its limits',
    async () => {
      const running = await limited();
      const mounters = await helpers('sbx-mounter');
      expect(mounters.length).toBeGreaterThan(0);
      const killed = [...mounters, ...(await helpers('sbx-keeper'))];
      for (const pid of killed) process.kill(pid, 'SIGKILL');
      // By then the spawner knows.
      await until(() => killed.every((pid) => !existsSync(`/proc/${pid}`)));
      expect(await crowd(running)).toBe(PIDS - 1);
      for (let round = 0; round < 6; round++) await lives();
      await world.end(running);
      await until(async () => (await helpers('sbx-mounter')).length === mounters.length);
      if (unified === null) await until(async () => (await helpers('sbx-keeper')).length > 0);
    },
    LIMIT_MS,
  );

  it.skipIf(unified !== null)(
    'helpers of the spawner that stand still delay no start: the work is done without them',
    async () => {
      for (let round = 0; round < 3; round++) await lives();
      const keepers = await helpers('sbx-keeper');
      expect(keepers.length).toBeGreaterThan(0);
      for (const pid of keepers) signal(pid, 'SIGSTOP');
      const begun = Date.now();
      for (let round = 0; round < 6; round++) await lives();
      expect(Date.now() - begun).toBeLessThan(keepers.length * 1_500 + 3_000);
      const left = await helpers('sbx-keeper');
      for (const pid of keepers) signal(pid, 'SIGCONT');
      expect(left.some((pid) => !keepers.includes(pid))).toBe(true);
      for (let round = 0; round < 3; round++) await lives();
    },
    LIMIT_MS,
  );

  it(
    'helpers of the spawner hold no foreign files open: a disk being written out blocks no other',
    async () => {
      const seen: string[][] = [];
      for (let round = 0; round < 20 && !seen.some((open) => open.length < 4); round++) {
        const living = await world.establish();
        const spawner = await SpawnerClient.open(join(world.base, 'spawner.sock'), () => {});
        const open = seeFlush(await world.spawnerPid(), () =>
          spawner.call('destroy', { id: living.spec.stamp.attemptId, discard: 0 }),
        );
        if (open !== null) seen.push(open);
        spawner.close();
        await world.end(living);
      }
      expect(seen.length).toBeGreaterThan(0);
      // Once, since it may be seen before it has begun.
      expect(seen.at(-1)?.filter((name) => !name.startsWith('/'))).toEqual([]);
    },
    LIMIT_MS,
  );

  it(
    'helpers of the spawner go with the spawner, also when that is killed, and what runs goes on',
    async () => {
      const living = await limited();
      const all = [...(await helpers('sbx-mounter')), ...(await helpers('sbx-keeper'))];
      process.kill(await world.spawnerPid(), 'SIGKILL');
      await until(() => all.every((pid) => !existsSync(`/proc/${pid}`) || !nameOf(pid).startsWith('sbx-')));
      await world.restart();
      const session = await world.extension.connect(living.handle, world.context);
      expect((await shell(session, 'echo here')).stdout).toBe('here\n');
      await world.end({ ...living, session });
      await lives();
    },
    LIMIT_MS,
  );
});
