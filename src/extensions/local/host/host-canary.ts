/**
 * What sandboxes below `base` must not have changed of the machine: compared before and after by every test. Others may
 * have theirs at the same time.
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
 * Where what is mounted, and how, without the numbers that the kernel gives. What is below `base` or comes from there is
 * ours, and so is whatever lies over a place that everybody knows; deeper ones are mounted by other programs at any time.
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

/** What a sandbox shows and must not change: the file, and which there are. */
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
