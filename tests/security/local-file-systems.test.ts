/** Snapshots and forks on the file systems that share blocks, each an image mounted where nobody else sees it. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'sandboxer-fs-'));
const MAKERS = { btrfs: 'mkfs.btrfs -q', xfs: 'mkfs.xfs -q', ext4: 'mkfs.ext4 -q -F' } as const;
const CHILD = join(import.meta.dirname, 'local-file-system.ts');

/** The kernel of this machine may know it or not, and loop devices may be forbidden: tried, not guessed. */
function mounted(kind: keyof typeof MAKERS, command: string) {
  const image = join(folder, `${kind}.img`);
  const point = join(folder, kind);
  mkdirSync(point, { recursive: true });
  const script = `truncate -s 640M ${image} && ${MAKERS[kind]} ${image} >/dev/null 2>&1 && mount -o loop ${image} ${point} && ${command}`;
  const result = spawnSync('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script], {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${process.env.PATH}:/sbin:/usr/sbin`, TMPDIR: point },
    timeout: 180_000,
  });
  rmSync(image, { force: true });
  return result;
}

const root = process.getuid?.() === 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(['btrfs', 'xfs', 'ext4'] as const)('ext.local on %s', (kind) => {
  const usable = root && mounted(kind, 'true').status === 0;

  it.skipIf(!usable)(
    `ext.local forks busy and idle sandboxes, restores, and leaves nothing${usable ? '' : ' (it cannot be mounted here)'}`,
    () => {
      const { stdout, stderr, status } = mounted(kind, `exec ${process.execPath} ${CHILD} 500`);
      expect(status, stderr).toBe(0);
      const found = JSON.parse(stdout);
      expect(found.reason).toBeNull();
      expect(found.source).toMatch(/^500\n.*\n750:user\nremoved\n$/);
      expect(found.busy.look).toBe(found.source);
      expect(found.idle.look).toBe(found.idleSource);
      expect(found.restored).toBe(found.idleSource);
      expect(found.layersLeft).toBe(0);
      // A disk that is a subvolume is taken as one, whatever is in it.
      const place = kind === 'btrfs' ? /^layers\/[^/]+\/disk\/upper$/ : /^layers\/[^/]+\/fs$/;
      for (const { layers } of [found.busy, found.idle]) expect(layers[0]).toMatch(place);
    },
    180_000,
  );
});
