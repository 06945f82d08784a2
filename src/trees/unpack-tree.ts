import { constants } from 'node:fs';
import { chmod, lstat, mkdir, open, realpath, rm, symlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { nameRefusal } from '../archive/entry-name.ts';
import { bytesOfName, hostPath } from '../archive/file-name.ts';
import { judgeLink, partsOf } from '../archive/link-judge.ts';
import type { TarEntry, TarHeader } from '../archive/tar/format.ts';
import { TarError } from '../archive/tar/format.ts';
import { readTar } from '../archive/tar/read-tar.ts';
import { diskLook } from './disk-look.ts';

export interface UnpackOptions {
  readonly onEntry?: ((header: TarHeader) => void) | undefined;
  /** Entries left out: links that would lead out of the tree, and names that this machine does not accept. */
  readonly onSkipped?: ((path: string, reason: string) => void) | undefined;
}

const WRITE_NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

function placeOf(name: string): string[] {
  const hostile = nameRefusal(name);
  if (hostile !== null) throw new TarError(hostile);
  return partsOf(name);
}

/**
 * Writes an archive below a directory, which it makes. The archive comes from a sandbox and is not trusted: nothing is written
 * through a link, links are made last and only where they stay inside the tree, and no set-id bit survives.
 */
class Unpacker {
  readonly #top: string;
  readonly #options: UnpackOptions;
  readonly #known = new Set<string>(['']);
  readonly #links: { readonly parts: readonly string[]; readonly target: string }[] = [];
  readonly #directories: { readonly path: string; readonly mode: number }[] = [];

  constructor(top: string, options: UnpackOptions) {
    this.#top = top;
    this.#options = options;
  }

  async take(entry: TarEntry): Promise<void> {
    const parts = placeOf(entry.name);
    this.#options.onEntry?.(entry);
    try {
      await this.#put(parts, entry);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EILSEQ') throw error;
      this.#options.onSkipped?.(entry.name, 'this file system takes no such name');
    }
  }

  async #put(parts: readonly string[], entry: TarEntry): Promise<void> {
    if (entry.kind === 'directory') {
      await this.#directory(parts);
      if (parts.length > 0) {
        this.#directories.push({ path: join(this.#top, ...parts), mode: entry.mode & 0o777 });
      }
      return;
    }
    if (parts.length === 0) throw new TarError('The archive is a single file.');
    if (entry.kind === 'symlink') {
      this.#links.push({ parts, target: entry.linkTarget ?? '' });
      return;
    }
    await this.#file(parts, entry);
  }

  /** Modes of directories come last: a read-only one must not refuse its own content. */
  async finish(): Promise<void> {
    const look = diskLook(this.#top);
    for (const { parts, target } of this.#links) {
      const name = parts.join('/');
      await this.#directory(parts.slice(0, -1));
      const lead = judgeLink(look, name, target);
      if ('refused' in lead) {
        this.#options.onSkipped?.(name, `it links to ${target}, ${lead.refused}`);
        continue;
      }
      const path = await this.#place(parts);
      await symlink(bytesOfName(target), hostPath(path));
    }
    for (const { path, mode } of this.#directories.reverse()) await chmod(hostPath(path), mode | 0o700);
  }

  async #file(parts: readonly string[], entry: TarEntry): Promise<void> {
    const path = hostPath(await this.#place(parts));
    const file = await open(path, WRITE_NEW, 0o600);
    try {
      for await (const part of entry.body) await file.write(part);
      await file.chmod(entry.mode & 0o777);
    } finally {
      await file.close();
    }
    await utimes(path, entry.modifiedAtMs / 1000, entry.modifiedAtMs / 1000);
  }

  /** Makes room for a new file or link: makes its parents, removes the former file. */
  async #place(parts: readonly string[]): Promise<string> {
    await this.#directory(parts.slice(0, -1));
    const path = join(this.#top, ...parts);
    const existing = await lstat(hostPath(path)).catch(() => null);
    if (existing?.isDirectory()) throw new TarError(`There is a directory in the way: ${path}`);
    if (existing) await rm(hostPath(path));
    return path;
  }

  async #directory(parts: readonly string[]): Promise<void> {
    for (let count = 1; count <= parts.length; count += 1) {
      const name = parts.slice(0, count).join('/');
      if (this.#known.has(name)) continue;
      const path = join(this.#top, name);
      const existing = await lstat(hostPath(path)).catch(() => null);
      if (existing === null) await mkdir(hostPath(path));
      else if (!existing.isDirectory()) throw new TarError(`There is something in the way: ${path}`);
      this.#known.add(name);
    }
  }
}

export async function unpackTree(
  tar: AsyncIterable<Uint8Array>,
  directory: string,
  options: UnpackOptions = {},
): Promise<{ files: number }> {
  await mkdir(directory, { recursive: true });
  const unpacker = new Unpacker(await realpath(directory), options);
  let files = 0;
  for await (const entry of readTar(tar)) {
    await unpacker.take(entry);
    if (entry.kind === 'file') files += 1;
  }
  await unpacker.finish();
  return { files };
}
