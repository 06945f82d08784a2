import { existsSync, mkdirSync, mkdtempSync, rmdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * A directory with its parents, as `mkdir -p` makes it. Node's own (24.x) never returns where a file system answers
 * "no such file" for a name below a directory that is there, as /proc does.
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

/** A directory for this user alone, in which something can really be made: rights alone do not tell. */
export function makeOwnDirectory(path: string): void {
  makeDirectory(path, 0o700);
  rmdirSync(mkdtempSync(join(path, '.try-')));
}
