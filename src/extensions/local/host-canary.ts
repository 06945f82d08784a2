/** What a sandbox must not have changed of the machine: compared before and after by every test. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function groups(): string[] {
  const found: string[] = [];
  const root = '/sys/fs/cgroup';
  const look = (path: string) => {
    try {
      found.push(...readdirSync(path).filter((name) => name.startsWith('sandboxer-')).map((name) => `${path}/${name}`));
    } catch {
      // There is no such controller.
    }
  };
  look(root);
  for (const name of ['memory', 'pids', 'cpu', 'freezer', 'unified']) look(`${root}/${name}`);
  return found;
}

export function hostCanary(): string {
  const { mode, uid, gid, rdev } = statSync('/dev/null');
  return JSON.stringify(
    {
      mounts: createHash('sha256').update(read('/proc/self/mountinfo')).digest('hex'),
      hostname: hostname(),
      devNull: [mode, uid, gid, rdev],
      interfaces: Object.keys(networkInterfaces()).sort(),
      corePattern: read('/proc/sys/kernel/core_pattern'),
      groups: groups(),
      loops: readdirSync('/sys/block').filter((name) => read(`/sys/block/${name}/loop/backing_file`) !== ''),
    },
    null,
    1,
  );
}
