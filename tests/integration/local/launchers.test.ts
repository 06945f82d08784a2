/** Launchers, who have the runtime loaded before there is a sandbox: what happens when they or it do not play along. */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SpawnerClient } from '../../../src/extensions/local/engine/spawner-client.ts';
import { LocalWorld, shell } from '../../security/local-world.ts';
import { until } from '../../support/until.ts';

const POOL = 3;
const world = new LocalWorld({ launchers: POOL, warm: 0 });
const reason = await world.whyNot();

const doors = ({ base }: LocalWorld) => readdirSync(join(base, 'run', 'doors'));
/** What the runtime notes of containers, where only the spawner sees it. */
const containers = async (world: LocalWorld) =>
  readdirSync(join(`/proc/${await world.spawnerPid()}/root`, world.base, 'run', 'runtime'));

/** Processes that wait to become a sandbox: the runtime itself, with its name and command line. Keepers have it loaded, too. */
function waiting({ base }: LocalWorld): number[] {
  const loaded = (pid: string) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      const keeps = line.some((word) => word.startsWith('keeper_'));
      return line.includes(`--bundle=${base}/mnt`) && line.includes('--config=/proc/self/fd/5') && !keeps;
    } catch {
      return false;
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && loaded(name))
    .map(Number);
}

describe.skipIf(reason !== null)(`launchers${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(() => world.close());

  it('launchers have the runtime loaded, once, and leave nothing of a sandbox that is over', async () => {
    const living = await world.establish();
    await until(() => waiting(world).length === POOL);
    expect(doors(world)).toHaveLength(POOL);
    await until(async () => (await containers(world)).length === 0);
    const mounts = readFileSync(`/proc/${waiting(world)[0]}/mountinfo`, 'utf8');
    // That it cannot be written as we see it is what saves it from loading itself a second time.
    expect(mounts).toMatch(/ \/\S*crun ro[, ]/);
    await world.end(living);
    expect(await containers(world)).toEqual([]);
    await until(() => doors(world).length === POOL);
  });

  it('launchers are replaced when they are killed while they wait', async () => {
    await world.end(await world.establish());
    await until(() => waiting(world).length === POOL);
    const killed = waiting(world);
    for (const pid of killed) process.kill(pid, 'SIGKILL');
    await until(() => waiting(world).filter((pid) => !killed.includes(pid)).length === POOL);
    expect(doors(world)).toHaveLength(POOL);
    const living = await world.establish();
    expect((await shell(living.session, 'echo well')).stdout).toBe('well\n');
    await world.end(living);
  });

  it('launchers report the failed mount, not the runtime’s message', async () => {
    const living = await world.establish();
    const sandboxes = join(world.base, 'sandboxes');
    const source = join(sandboxes, living.spec.stamp.attemptId);
    const { layers, range } = JSON.parse(readFileSync(join(source, 'record.json'), 'utf8'));
    mkdirSync(join(sandboxes, 'misled'), { mode: 0o711 });
    copyFileSync(join(source, 'config.json'), join(sandboxes, 'misled', 'config.json'));
    const spawner = await SpawnerClient.open(join(world.base, 'spawner.sock'), () => {});
    const start = spawner.call('create', { id: 'misled', layers: layers[0], range, volumes: 'vol_none' });
    expect(await start.catch((error: Error) => error.message.trim())).toBe(
      'volume vol_none: No such file or directory',
    );
    await spawner.call('destroy', { id: 'misled' });
    spawner.close();
    await world.end(living);
    expect(await containers(world)).toEqual([]);
  });

  it('sandboxes start also where the runtime cannot be loaded ahead', async () => {
    const wrapper = join(world.directory, 'crun-late');
    const script = 'case "$*" in *--config=*) echo not like that >&2; exit 1;; esac; exec crun "$@"';
    writeFileSync(wrapper, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const other = new LocalWorld({ runtime: wrapper, launchers: 2, warm: 0 });
    try {
      await other.whyNot();
      const first = await other.establish().catch(() => null);
      const log = () => readFileSync(join(other.base, 'spawner.log'), 'utf8');
      await until(() => /cannot be loaded ahead: not like that/.test(log()));
      if (first !== null) await other.end(first);
      const living = await other.establish();
      expect((await shell(living.session, 'echo well')).stdout).toBe('well\n');
      await other.end(living);
      expect(await containers(other)).toEqual([]);
    } finally {
      await other.close();
    }
  });
});
