import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { isSameProcess, processStart } from './process-identity.ts';

/** Holder of the lock: `<pid> <start of the process>`. */
function ownLine(): string {
  return `${process.pid} ${processStart(process.pid) ?? ''}`;
}

function holderIsGone(line: string): boolean {
  const space = line.indexOf(' ');
  const pid = Number(line.slice(0, space));
  if (space === -1 || !Number.isInteger(pid) || pid <= 1) return true;
  return !isSameProcess(pid, line.slice(space + 1) || null);
}

function lineOf(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return null;
  }
}

/** Removes the lock of a dead holder; a lock that changed hands meanwhile is put back. */
function clearStale(path: string): void {
  const line = lineOf(path);
  if (line === null || !holderIsGone(line)) return;
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
    if (lineOf(aside) !== line) linkSync(aside, path);
  } catch {
    // Another process was faster.
  } finally {
    rmSync(aside, { force: true });
  }
}

function tryTake(path: string): boolean {
  try {
    // The line must be there as soon as the file is: write it aside, then link.
    const draft = `${path}.${process.pid}.new`;
    const file = openSync(draft, 'w', 0o600);
    writeSync(file, ownLine());
    closeSync(file);
    try {
      linkSync(draft, path);
      return true;
    } finally {
      rmSync(draft, { force: true });
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Takes the lock: one holder among all processes of this user; a dead holder does not keep it. */
export function takeLock(path: string): boolean {
  if (tryTake(path)) return true;
  clearStale(path);
  return tryTake(path);
}

export function releaseLock(path: string): void {
  if (lineOf(path) === ownLine()) rmSync(path, { force: true });
}
