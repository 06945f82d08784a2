/** Sizes of disks come from requests: what they leave on this machine is bounded, and what cannot be had is refused. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LocalWorld } from '../../security/local-world.ts';

const world = new LocalWorld();
const isOffered = world.extension.header.capabilities.resources.includes('disk_mb');
const reason = (await world.whyNot()) ?? (isOffered ? null : 'disks cannot be limited here');
const LIMIT_MS = 120_000;
const blanks = () => readdirSync(join(world.base, 'disks'));

describe.skipIf(reason !== null)(`sizes of disks${reason === null ? '' : ` (${reason})`}`, () => {
  beforeAll(() => {
    mkdirSync(join(world.base, 'disks'), { recursive: true, mode: 0o700 });
    writeFileSync(join(world.base, 'disks', '8388600.ext4'), 'of an earlier version');
  });
  afterAll(() => world.close(), LIMIT_MS);

  it(
    'volumes: many sizes leave few blanks, and none of an earlier version',
    async () => {
      for (let n = 0; n < 12; n++) {
        const spec = { volumeId: `vol_${n}`, owner: 'local-tests', sizeMb: 16 + n };
        await world.extension.createVolume(spec);
        await world.extension.deleteVolume(spec.volumeId, spec.owner);
      }
      expect(blanks()).not.toContain('8388600.ext4');
      expect(blanks().length).toBeLessThanOrEqual(8);
    },
    LIMIT_MS,
  );

  it.each([2 ** 24, 2 ** 30])(
    'a disk of %i MiB is refused with its field, and nothing is made',
    async (sizeMb) => {
      const before = blanks();
      const open = readdirSync('/proc/self/fd').length;
      for (let round = 0; round < 10; round++) {
        const volume = { volumeId: 'vol_large', owner: 'local-tests', sizeMb };
        const refused = (field: string) => ({ code: 'SBX_UNSUPPORTED', extras: { field } });
        await expect(world.extension.createVolume(volume)).rejects.toMatchObject(refused('size_mb'));
        const { resources } = world.spec().recipe;
        const large = { resources: { ...resources, disk_mb: sizeMb } };
        await expect(world.establish(large)).rejects.toMatchObject(refused('resources.disk_mb'));
      }
      expect(blanks()).toEqual(before);
      expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(open + 2);
      expect(existsSync(join(world.base, 'volumes', 'vol_large'))).toBe(false);
    },
    LIMIT_MS,
  );
});
