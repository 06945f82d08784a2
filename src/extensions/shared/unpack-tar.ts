import { constants } from 'node:fs';
import { lchown, lstat, mkdir, open, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { readTreeArchive } from '../../core/assets/tree-archive.ts';

export interface UnpackTarOptions {
  /** Owner of all files; the unpacking user when left out. */
  readonly owner?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Makes missing parents, none of which may be a link. */
async function parentOf(top: string, name: string, owner: number | undefined): Promise<void> {
  const parts = dirname(name)
    .split('/')
    .filter((part) => part !== '.' && part !== '');
  for (let count = 1; count <= parts.length; count += 1)
    await makeDirectory(top, parts.slice(0, count).join('/'), owner);
}

async function makeDirectory(top: string, name: string, owner: number | undefined): Promise<void> {
  const path = join(top, name);
  const there = await lstat(path).catch(() => null);
  if (there?.isDirectory()) return;
  if (there) await rm(path);
  await mkdir(path, { mode: 0o755 });
  if (owner !== undefined) await lchown(path, owner, owner);
}

/** Removes the entry where a file or link is to be made. A directory stays: links may go up from it. */
async function clear(path: string, name: string): Promise<void> {
  const there = await lstat(path).catch(() => null);
  if (there?.isDirectory()) {
    throw new SandboxerError('SBX_PATH_REFUSED', `${name} is a directory of an earlier archive.`, {
      creation: 'not_created',
      remedy: `Send ${name} as a directory in each archive, or in one of them alone.`,
    });
  }
  if (there) await rm(path);
}

/**
 * Unpacks an archive below a directory that no other process writes to, readable for every user. No file is written through a
 * link, links are made last, and no special bit survives. A later archive lies over an earlier one.
 */
export async function unpackTar(
  archive: AsyncIterable<Uint8Array>,
  top: string,
  { owner, signal }: UnpackTarOptions = {},
): Promise<void> {
  const links: { readonly name: string; readonly target: string }[] = [];
  for await (const entry of readTreeArchive(archive)) {
    signal?.throwIfAborted();
    const { name, kind } = entry;
    if (name === '.') continue;
    await parentOf(top, name, owner);
    if (kind === 'directory') await makeDirectory(top, name, owner);
    else if (kind === 'symlink') links.push({ name, target: entry.linkTarget as string });
    else {
      const path = join(top, name);
      await clear(path, name);
      const file = await open(path, NEW_FILE, 0o644 | (entry.mode & 0o111));
      try {
        for await (const part of entry.body) await file.write(part);
        if (owner !== undefined) await file.chown(owner, owner);
        await file.utimes(entry.modifiedAtMs / 1000, entry.modifiedAtMs / 1000);
      } finally {
        await file.close();
      }
    }
  }
  for (const { name, target } of links) {
    const path = join(top, name);
    await parentOf(top, name, owner);
    await clear(path, name);
    await symlink(target, path);
    if (owner !== undefined) await lchown(path, owner, owner);
  }
}
