import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Returns the path of a program: from `PATH`, or from the system's own directories. */
export function findProgram(name: string): string | null {
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    '/usr/sbin',
    '/usr/bin',
    '/sbin',
    '/bin',
    '/usr/local/bin',
  ];
  const found = folders
    .map((folder) => join(folder, name))
    .find((path) => path.startsWith('/') && existsSync(path));
  return found ?? null;
}
