import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** When a process started, as its system tells it; `null` when there is no such process, it has ended, or there is no way to know. */
export function processStart(pid: number): string | null {
  try {
    if (process.platform === 'linux') {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      // The name in parentheses may hold anything; the state and the start time are the 1st and 20th field behind it.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return fields[0] === 'Z' ? null : (fields[19] ?? null);
    }
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || null;
  } catch {
    return null;
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Whether the process that was recorded is still the one with that number. */
export function isSameProcess(pid: number, start: string | null): boolean {
  return isAlive(pid) && (start === null || processStart(pid) === start);
}
