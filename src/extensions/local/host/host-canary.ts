/**
 * State of the machine that sandboxes below `base` must not change: every test compares it before and after. Other servers may
 * run sandboxes at the same time.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { Layout } from '../state/layout.ts';
import { placesOfGroup } from './control-groups.ts';

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/**
 * Returns the mounts with their options, without the numbers that the kernel gives. Counted are mounts below `base` or from
 * there, and mounts over well-known places; other programs mount deeper ones at any time.
 */
function mounts(base: string): string[] {
  const ours = (text: string) => text.includes(base);
  const known = (point: string) => /^\/(?:dev|proc|sys)(?:\/|$)|^\/[^/]*(?:\/[^/]+)?$/.test(point);
  return read('/proc/self/mountinfo')
    .split('\n')
    .map((line) => line.split(' ').slice(3))
    .filter(([root = '', point = '', ...rest]) => known(point) || ours(`${root} ${point} ${rest.join(' ')}`))
    .map((words) => words.join(' '));
}

function loops(base: string): string[] {
  return readdirSync('/sys/block').filter((name) =>
    read(`/sys/block/${name}/loop/backing_file`).startsWith(base),
  );
}

/** Returns the state of files that a sandbox shows and must not change, and their list. */
function usr(): unknown {
  const { ino, size, mtimeMs, ctimeMs, mode, uid } = statSync('/usr/bin/true');
  return [ino, size, mtimeMs, ctimeMs, mode, uid, statSync('/usr/bin').mtimeMs];
}

export function hostCanary(base: string): string {
  const { mode, uid, gid, rdev } = statSync('/dev/null');
  return JSON.stringify(
    {
      mounts: mounts(base),
      hostname: hostname(),
      usr: usr(),
      devNull: [mode, uid, gid, rdev],
      // The links of engines that other tests started come and go meanwhile.
      interfaces: Object.keys(networkInterfaces())
        .filter((name) => !/^sbx[0-9a-f]{8}$/.test(name))
        .sort(),
      corePattern: read('/proc/sys/kernel/core_pattern'),
      groups: placesOfGroup(new Layout(base).group).filter((path) => existsSync(path)),
      loops: loops(base),
    },
    null,
    1,
  );
}
