/** Sandboxes that were started ahead and wait, and what the kernel limits in one. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Waiting {
  readonly name: string;
  readonly pid: number;
}

/** Those that nobody has claimed and that have answered. */
export function waiting(base: string): Waiting[] {
  const sandboxes = join(base, 'sandboxes');
  if (!existsSync(sandboxes)) return [];
  return readdirSync(sandboxes).flatMap((name) => {
    const note = join(sandboxes, name, 'run');
    const pid = name.startsWith('warm-') && existsSync(note) ? readFileSync(note, 'utf8').split(' ')[3] : '0';
    return Number(pid) > 0 ? [{ name, pid: Number(pid) }] : [];
  });
}

/** The first file of these names in the control group of a process. */
function groupFile(pid: number, names: readonly string[]): string {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  for (const line of readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n')) {
    const [, controllers = '', ...path] = line.split(':');
    for (const mount of mounts) {
      const [, , , , point = ''] = mount.split(' ');
      const [type, , options = ''] = (mount.split(' - ')[1] ?? '').split(' ');
      const fits = controllers === '' ? type === 'cgroup2' : options.split(',').includes(controllers);
      if (type?.startsWith('cgroup') !== true || !fits) continue;
      for (const name of names) {
        const file = join(point, path.join(':'), name);
        if (existsSync(file)) return readFileSync(file, 'utf8').trim();
      }
    }
  }
  return 'no such file';
}

export const memoryOf = (pid: number) => groupFile(pid, ['memory.limit_in_bytes', 'memory.max']);
export const pidsOf = (pid: number) => groupFile(pid, ['pids.max']);
/** Not a number where it has just ended. */
export function processesOf(pid: number): number {
  return existsSync(`/proc/${pid}/cgroup`) ? Number(groupFile(pid, ['pids.current'])) : Number.NaN;
}
