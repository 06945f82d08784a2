/** What outlives what: sandboxes the control plane, the spawner and each other; disks the machine. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostCanary } from '../../src/extensions/local/host/host-canary.ts';
import { spawnSpec } from '../../src/testing/conformance/run-program.ts';
import { until } from '../support/until.ts';
import type { Living } from './local-world.ts';
import { LocalWorld, shell } from './local-world.ts';

const world = new LocalWorld();
const before = hostCanary(world.base);
const reason = await world.whyNot();

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function killSpawner(): Promise<number> {
  const pid = await world.spawnerPid();
  process.kill(pid, 'SIGKILL');
  await until(() => !alive(pid));
  return pid;
}

function recordOf(living: Living, { base } = world): { pid: number; slot: number } {
  const [, , , pid, , slot] = readFileSync(
    join(base, 'sandboxes', living.spec.stamp.attemptId, 'run'),
    'utf8',
  ).split(' ');
  return { pid: Number(pid), slot: Number(slot) };
}

describe.skipIf(reason !== null)(`ext.local survives${reason === null ? '' : ` (${reason})`}`, () => {
  beforeAll(async () => {
    await world.end(await world.establish());
  });

  afterAll(async () => {
    await world.close();
    expect(hostCanary(world.base)).toBe(before);
  });

  it('a restart of the control plane: running programs go on and their output is there', async () => {
    const living = await world.establish();
    const script = 'i=0; while [ $i -lt 40 ]; do echo $i; i=$((i+1)); sleep 0.05; done';
    const process = await living.session.spawn(spawnSpec(['/bin/sh', '-c', script], { background: true }));
    await process.detach();
    await world.restart();
    expect(await world.owned()).toContain(living.spec.stamp.attemptId);
    const again = await world.open(living.spec, living.handle);
    const attached = await again.session.attach?.(process.id, 0);
    let text = '';
    for await (const chunk of attached?.output ?? [])
      if ('data' in chunk) text += Buffer.from(chunk.data).toString();
    expect(text).toBe(Array.from({ length: 40 }, (_, n) => `${n}\n`).join(''));
    await world.end(again);
  });

  it('a sandbox survives a kill -9 of the spawner: the next one adopts, limits, pauses and ends it', async () => {
    const living = await world.establish({
      resources: { cpu: null, memory_mb: 128, disk_mb: null, pids: 64, open_files: null, gpu: null },
    });
    const { pid } = recordOf(living);
    const first = await killSpawner();
    expect(alive(pid)).toBe(true);
    expect((await shell(living.session, 'echo still here')).stdout).toBe('still here\n');
    await until(async () => {
      await world.extension.extendLife(living.handle, Date.now() + 300_000).catch(() => {});
      return (await world.spawnerPid().catch(() => first)) !== first;
    });
    await world.extension.pause(living.handle);
    await world.extension.resume(living.handle);
    expect((await shell(living.session, 'echo still here')).stdout).toBe('still here\n');
    await world.end(living);
    await until(() => !alive(pid));
  });

  it('a kill -9 of both while sandboxes are made: nothing is left that is not known', async () => {
    const specs = Array.from({ length: 12 }, () => world.spec());
    const making = specs.map((spec) => world.extension.provision(spec, world.context).catch(() => {}));
    await sleep(15);
    await killSpawner().catch(() => {});
    await Promise.all(making);
    await world.restart();
    for (const { stamp } of specs) {
      expect((await world.extension.teardown({ stamp, handle: null }, world.context)).gone).toBe(true);
    }
    expect(await world.owned()).toEqual([]);
    expect(readdirSync(join(world.base, 'sandboxes'))).toEqual([]);
  });

  it('an unreported end frees its range of ids', async () => {
    const own = new LocalWorld({ warm: 0 });
    const rangeOf = ({ spec }: Living): number =>
      JSON.parse(readFileSync(join(own.base, 'sandboxes', spec.stamp.attemptId, 'record.json'), 'utf8'))
        .range;
    const living = await own.establish();
    const range = rangeOf(living);
    const pids = [await own.spawnerPid(), recordOf(living, own).pid];
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    for (const pid of pids) await until(() => !alive(pid));
    rmSync(join(own.base, 'sandboxes', living.spec.stamp.attemptId), { recursive: true });
    await own.end(living);
    const next = await own.establish();
    expect(rangeOf(next)).toBe(range);
    await own.end(next);
    await own.close();
  });

  it('the spawner leaves when no sandbox lives and no client is there, and not before', async () => {
    const short = new LocalWorld({ lingerMs: 300 });
    const living = await short.establish();
    const pid = await short.spawnerPid();
    await living.session.close();
    await short.extension.close();
    await sleep(1_000);
    expect(alive(pid)).toBe(true);
    await short.restart();
    expect(await short.spawnerPid()).toBe(pid);
    await short.end(await short.open(living.spec, living.handle));
    await short.extension.close();
    await until(() => !alive(pid));
    expect(existsSync(join(short.base, 'spawner.sock'))).toBe(false);
    await short.restart();
    await short.close();
  });

  it('a sandbox ends in time also without a client', async () => {
    const living = await world.establish({}, { endsAt: Date.now() + 8_000 });
    const { pid } = recordOf(living);
    await living.session.close();
    await world.extension.close();
    await until(() => !alive(pid));
    await world.restart();
    await until(() => !existsSync(join(world.base, 'sandboxes', living.spec.stamp.attemptId)));
  });

  it('a reboot of the machine: the persistent one keeps its disk, the other is known as lost', async () => {
    const kept = await world.establish({ persistence: 'persistent' });
    const lost = await world.establish();
    await shell(kept.session, 'echo precious > file');
    const pids = [kept, lost].map((living) => recordOf(living).pid);
    await killSpawner();
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    for (const pid of pids) await until(() => !alive(pid));
    // What a reboot takes: the run directory, the sockets, and the name of this boot.
    rmSync(join(world.base, 'run'), { recursive: true });
    for (const { spec } of [kept, lost]) {
      const path = join(world.base, 'sandboxes', spec.stamp.attemptId, 'run');
      writeFileSync(path, readFileSync(path, 'utf8').replace(/^1 \S+/, '1 another-boot'));
    }
    await world.restart();
    const again = await world.open(kept.spec, kept.handle);
    expect((await shell(again.session, 'cat file')).stdout).toBe('precious\n');
    await expect(world.open(lost.spec, lost.handle)).rejects.toMatchObject({ code: 'SBX_BACKEND_LOST' });
    expect((await world.owned()).sort()).toEqual(
      [kept.spec.stamp.attemptId, lost.spec.stamp.attemptId].sort(),
    );
    await world.end(again);
    expect(
      (await world.extension.teardown({ stamp: lost.spec.stamp, handle: null }, world.context)).gone,
    ).toBe(true);
  });

  it('a fork of a large idle sandbox makes its disk a layer, and its session goes on', async () => {
    const living = await world.establish();
    await shell(
      living.session,
      'mkdir d; i=0; while [ $i -lt 600 ]; do echo $i > d/$i; i=$((i+1)); done; chmod 700 d',
    );
    const forkSpec = world.spec();
    const fork = await world.open(
      forkSpec,
      await world.extension.fork(living.handle, forkSpec, world.context),
    );
    const layers = () =>
      JSON.parse(
        readFileSync(join(world.base, 'sandboxes', living.spec.stamp.attemptId, 'record.json'), 'utf8'),
      ).layers;
    expect(layers()).toHaveLength(2);
    for (const one of [living, fork]) {
      const { stdout } = await shell(one.session, 'ls d | wc -l; stat -c %a:%U d; cat d/599');
      expect(stdout).toBe('600\n700:user\n599\n');
    }
    await shell(living.session, 'rm -r d');
    expect((await shell(fork.session, 'ls d | wc -l')).stdout).toBe('600\n');
    await world.end(living);
    expect((await shell(fork.session, 'ls d | wc -l')).stdout).toBe('600\n');
    await world.end(fork);
    await until(() => readdirSync(join(world.base, 'layers')).length === 0);
  });

  it('ext.local survives programs started while its disk becomes a layer', async () => {
    const living = await world.establish();
    await shell(living.session, 'mkdir d; i=0; while [ $i -lt 600 ]; do echo $i > d/$i; i=$((i+1)); done');
    let over = false;
    const codes: number[] = [];
    const caller = async () => {
      while (!over) codes.push((await shell(living.session, 'true')).code);
    };
    const callers = [caller(), caller()];
    for (let n = 0; n < 6; n++) {
      const spec = { snapshotId: `snap_race_${n}`, name: null, owner: 'local-tests' };
      const { ref } = await world.extension.snapshot(living.handle, spec);
      await world.extension.deleteSnapshot(ref, spec);
      await shell(living.session, 'i=0; while [ $i -lt 600 ]; do echo $i > d/$i; i=$((i+1)); done');
      await sleep(20);
    }
    over = true;
    await Promise.all(callers);
    expect(codes.length).toBeGreaterThan(0);
    expect(codes.every((code) => code === 0)).toBe(true);
    await world.end(living);
  });

  it('a chain of forks: it is shortened, and nothing in it is lost or comes back', async () => {
    let living = await world.establish();
    await shell(living.session, 'mkdir kept gone; echo 0 > kept/0; echo x > gone/x; chmod 750 kept');
    await shell(living.session, 'rm /etc/hosts; echo new > /etc/new; chmod u+s /etc/new', 'root');
    for (let n = 1; n <= 24; n++) {
      const spec = world.spec();
      const next = await world.open(spec, await world.extension.fork(living.handle, spec, world.context));
      await shell(next.session, n === 3 ? `rm -r gone; echo ${n} > kept/${n}` : `echo ${n} > kept/${n}`);
      await world.end(living);
      living = next;
    }
    const { layers } = JSON.parse(
      readFileSync(join(world.base, 'sandboxes', living.spec.stamp.attemptId, 'record.json'), 'utf8'),
    );
    expect(layers.length).toBeLessThan(20);
    const { stdout } = await shell(
      living.session,
      'ls kept | wc -l; ls gone /etc/hosts 2>/dev/null; stat -c %a:%U kept; stat -c %a:%U /etc/new; ls -d /home/user /tmp',
    );
    expect(stdout).toBe('25\n750:user\n4644:root\n/home/user\n/tmp\n');
    await world.end(living);
    await until(() => readdirSync(join(world.base, 'layers')).length === 0);
  });
});
