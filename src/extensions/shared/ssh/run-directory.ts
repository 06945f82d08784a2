import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A socket's path may have 107 bytes, of which OpenSSH uses 17 while it binds. */
const LONGEST_ROOT = 56;
const OURS = /^sbx-(\d+)-/;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Removes directories of processes that are gone. */
async function sweep(root: string): Promise<void> {
  for (const name of await readdir(root)) {
    const pid = Number(OURS.exec(name)?.[1] ?? process.pid);
    if (isAlive(pid)) continue;
    const path = join(root, name);
    const owner = await stat(path).catch(() => null);
    if (owner?.uid === process.getuid?.()) await rm(path, { recursive: true, force: true }).catch(() => {});
  }
}

/** Makes a new directory (0700) with a path short enough for sockets. */
export async function makeRunDirectory(root = tmpdir()): Promise<string> {
  const place = Buffer.byteLength(root) > LONGEST_ROOT ? '/tmp' : root;
  await mkdir(place, { recursive: true });
  await sweep(place).catch(() => {});
  return await mkdtemp(join(place, `sbx-${process.pid}-`));
}
