import { existsSync, mkdirSync, mkdtempSync, rmdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Makes a directory with its parents, as `mkdir -p` does. Node's own (24.x) never returns where a file system answers "no such
 * file" for a name below an existing directory, as /proc does.
 */
export function makeDirectory(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(path).isDirectory()) return;
    const parent = dirname(path);
    if (code !== 'ENOENT' || parent === path || existsSync(parent)) throw error;
    makeDirectory(parent, mode);
    makeDirectory(path, mode);
  }
}

/** Makes a directory for this user alone, and checks that a file can be made in it: rights alone do not show it. */
export function makeOwnDirectory(path: string): void {
  makeDirectory(path, 0o700);
  rmdirSync(mkdtempSync(join(path, '.try-')));
}
