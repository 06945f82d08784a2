/** A real engine on a real btrfs, whose driver keeps `disk_mb`, and the mode of an image's root as it is. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBusyboxTree } from '../../support/busybox-tree.ts';
import { DockerWorld, output } from '../../support/docker-world.ts';
import type { Dockerd } from '../../support/dockerd.ts';
import { whyNoDockerd } from '../../support/dockerd.ts';

function whyNoBtrfs(): string | null {
  if (spawnSync('which', ['mkfs.btrfs']).status !== 0) return 'mkfs.btrfs is not installed';
  return existsSync('/dev/loop-control') ? null : 'there are no loop devices';
}

const whyNot = whyNoDockerd() ?? whyNoBtrfs();

describe.skipIf(whyNot !== null)(
  `an engine on btrfs${whyNot ? ` (${whyNot})` : ''}`,
  { timeout: 120_000 },
  () => {
    let world: DockerWorld;

    beforeAll(async () => {
      const config = { 'storage-driver': 'btrfs' };
      // Where only the engine sees the mount: what takes it away is the end of its namespaces.
      const prepare = async (engine: Dockerd) => {
        const disk = join(engine.directory, 'disk');
        const data = join(engine.directory, 'data');
        const made = `truncate -s 600M ${disk} && mkfs.btrfs -q ${disk} && mkdir ${data} && mount -o loop ${disk} ${data}`;
        await engine.enter('sh', '-c', made);
      };
      world = await DockerWorld.start({}, { config, prepare });
    });
    afterAll(() => world.close());

    it('an engine on btrfs applies disk_mb', async () => {
      expect(world.extension.header.capabilities.resources).toContain('disk_mb');
      const limits = { cpu: null, memory_mb: null, pids: null, open_files: null, gpu: null };
      const living = await world.establish({ resources: { ...limits, disk_mb: 48 } });
      expect(await world.inspect(living)).toMatchObject({ HostConfig: { StorageOpt: { size: '48M' } } });
      const said = await output(living.session, 'dd if=/dev/zero of=much bs=1M count=96; sync; du -m much');
      expect(said).toMatch(/quota exceeded|No space left/i);
      expect(Number(/^(\d+)\tmuch$/m.exec(said)?.[1])).toBeLessThanOrEqual(48);
      const free = await world.establish({ resources: { ...limits, disk_mb: null } });
      const fill = 'dd if=/dev/zero of=much bs=1M count=60 2>/dev/null && echo fits';
      expect(await output(free.session, fill)).toBe('fits');
      for (const one of [living, free]) await world.end(one);
    });

    it('an image without entry rights is refused, and costs the others nothing', async () => {
      const tree = join(world.engine.directory, 'closed');
      mkdirSync(tree);
      writeBusyboxTree(tree);
      chmodSync(tree, 0o700);
      execFileSync('tar', ['--numeric-owner', '-C', tree, '-cf', `${tree}.tar`, '.']);
      await world.engine.docker('import', `${tree}.tar`, 'sandboxer-test/closed:1');
      const spec = world.spec({ image: 'sandboxer-test/closed:1' });
      const handle = await world.extension.provision(spec, world.context);
      const refused = world.extension.waitReady(handle, world.context);
      await expect(refused).rejects.toMatchObject({
        code: 'SBX_EXTENSION_FAILED',
        detail: expect.stringContaining('permission denied'),
      });
      await world.extension.teardown({ stamp: spec.stamp, handle }, world.context);
      const own = await world.establish();
      expect(await world.inspect(own)).toMatchObject({
        Config: { Labels: { 'io.sandboxer.channel': 'call' } },
      });
      await world.end(own);
      expect(await world.engine.docker('ps', '-aq')).toBe('');
    });
  },
);
