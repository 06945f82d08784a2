import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where a program is: in `PATH`, or where the system's own are. */
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
