import { closeSync, openSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Longest path that fits into the address of a unix socket. */
const LONGEST_PATH = 100;

/** Runs `work` with a path that the kernel accepts: a long one goes through its directory. */
export async function withReachable<T>(path: string, work: (path: string) => Promise<T>): Promise<T> {
  if (Buffer.byteLength(path) <= LONGEST_PATH) return await work(path);
  const directory = openSync(dirname(path), 'r');
  try {
    return await work(`/proc/self/fd/${directory}/${basename(path)}`);
  } finally {
    closeSync(directory);
  }
}
