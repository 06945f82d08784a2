import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { constants } from 'node:fs';
import {
  chmod,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
} from 'node:fs/promises';
import { basename } from 'node:path';
import type { TarEntry } from '../../../archive/tar/format.ts';
import type { FileEntry } from '../../../contract/sandboxes/files.ts';
import { readTreeArchive, writeTreeArchive } from '../../../core/assets/tree-archive.ts';
import type { Confined } from './confined-path.ts';
import { confined, notFound, refused, unlessAbsent } from './confined-path.ts';

const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const WRITE_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const CHUNK_BYTES = 65_536;

async function entryOf(path: string, shown: string, stats: Stats): Promise<FileEntry> {
  const kind = stats.isFile()
    ? 'file'
    : stats.isDirectory()
      ? 'directory'
      : stats.isSymbolicLink()
        ? 'symlink'
        : 'other';
  return {
    name: basename(shown),
    path: shown,
    kind,
    size: stats.size,
    mode: stats.mode & 0o7777,
    modified_at: stats.mtime.toISOString(),
    link_target: kind === 'symlink' ? await readlink(path) : null,
  };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function removeTree(path: string, stats: Stats): Promise<void> {
  if (!stats.isDirectory()) return await unlink(path);
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const held = `/proc/self/fd/${handle.fd}`;
    for (const name of await readdir(held)) {
      const inner = `${held}/${name}`;
      const innerStats = await unlessAbsent(lstat(inner));
      if (innerStats !== null) await removeTree(inner, innerStats);
    }
  } finally {
    await handle.close();
  }
  await rmdir(path);
}

interface PutOptions {
  readonly mode: number | null;
  readonly exclusive: boolean;
}

/** The file operations of one object, confined to its directory. */
export class MachineFiles {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async stat(path: string): Promise<FileEntry> {
    return await confined(this.#root, path, {}, async ({ path: at, shown, stats }) => {
      if (stats === null) throw notFound(path);
      return await entryOf(at, shown, stats);
    });
  }

  async list(path: string, limit: number): Promise<{ entries: FileEntry[]; truncated: boolean }> {
    return await confined(this.#root, path, { followLast: true }, async ({ path: at, shown, stats }) => {
      if (stats === null) throw notFound(path);
      if (!stats.isDirectory()) throw refused(path, 'it is not a directory');
      const names = (await readdir(at)).sort();
      const entries: FileEntry[] = [];
      for (const name of names.slice(0, limit)) {
        const inner = await unlessAbsent(lstat(`${at}/${name}`));
        if (inner !== null) entries.push(await entryOf(`${at}/${name}`, `${shown}/${name}`, inner));
      }
      return { entries, truncated: names.length > limit };
    });
  }

  /** Calls `started` with the size before the first byte is read. */
  async read(
    path: string,
    range: { offset: number; length: number | null },
    started: (size: number) => Promise<void>,
    sink: (chunk: Buffer) => Promise<void>,
  ): Promise<void> {
    await confined(this.#root, path, { followLast: true }, async ({ path: at }) => {
      const handle = await open(at, READ_FLAGS);
      try {
        const stats = await handle.stat();
        if (!stats.isFile()) throw refused(path, 'it is not a file');
        await started(stats.size);
        const end = range.length === null ? stats.size : Math.min(stats.size, range.offset + range.length);
        for (let position = range.offset; position < end; ) {
          const wanted = Math.min(CHUNK_BYTES, end - position);
          const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(wanted), 0, wanted, position);
          if (bytesRead === 0) break;
          position += bytesRead;
          await sink(buffer.subarray(0, bytesRead));
        }
      } finally {
        await handle.close();
      }
    });
  }

  async write(
    path: string,
    body: AsyncIterable<Uint8Array>,
    options: { mode: number | null; exclusive: boolean },
  ): Promise<FileEntry> {
    return await confined(this.#root, path, { followLast: true, makeParents: true }, async (place) => {
      await this.#put(place, path, body, { mode: options.mode, exclusive: options.exclusive });
      return await entryOf(place.path, place.shown, await lstat(place.path));
    });
  }

  async mkdir(path: string, options: { parents: boolean; mode: number }): Promise<void> {
    const walk = { followLast: true, makeParents: options.parents };
    await confined(this.#root, path, walk, async ({ path: at, stats }) => {
      if (stats?.isDirectory() && options.parents) return;
      if (stats !== null) throw refused(path, 'it exists');
      await mkdir(at);
      await chmod(at, options.mode);
    });
  }

  async move(from: string, to: string, overwrite: boolean): Promise<void> {
    await confined(this.#root, from, {}, async (source) => {
      if (source.stats === null) throw notFound(from);
      if (source.isRoot) throw refused(from, 'the root cannot be moved');
      await confined(this.#root, to, { makeParents: true }, async (target) => {
        if (target.stats !== null && !overwrite) throw refused(to, 'it exists');
        await rename(source.path, target.path);
      });
    });
  }

  async remove(path: string, recursive: boolean): Promise<void> {
    const work = confined(this.#root, path, {}, async ({ path: at, stats, isRoot }) => {
      if (isRoot) throw refused(path, 'the root cannot be removed');
      if (stats === null) return;
      if (stats.isDirectory() && !recursive) await rmdir(at);
      else await removeTree(at, stats);
    });
    await work.catch((error: { code?: string }) => {
      if (error.code !== 'SBX_PATH_NOT_FOUND') throw error;
    });
  }

  async upload(path: string, tar: AsyncIterable<Uint8Array>): Promise<{ files: number }> {
    const base = await confined(this.#root, path, { followLast: true, makeParents: true }, async (place) => {
      if (place.stats === null) await mkdir(place.path);
      else if (!place.stats.isDirectory()) throw refused(path, 'it is not a directory');
      return place.shown;
    });
    let files = 0;
    for await (const entry of readTreeArchive(tar)) {
      if (entry.name === '.') continue;
      const name = `${base}/${entry.name}`;
      await confined(this.#root, name, { makeParents: true }, (place) => this.#unpack(place, entry));
      if (entry.kind === 'file') files += 1;
    }
    return { files };
  }

  download(path: string): AsyncIterable<Uint8Array> {
    return writeTreeArchive(this.#pack(path));
  }

  async #unpack(place: Confined, entry: TarEntry): Promise<void> {
    const { stats, path } = place;
    if (entry.kind === 'file')
      return await this.#put(place, entry.name, entry.body, { mode: entry.mode, exclusive: false });
    if (entry.kind === 'directory') {
      if (stats === null) await mkdir(path);
      else if (!stats.isDirectory()) throw refused(entry.name, 'it is not a directory');
      return await chmod(path, entry.mode | 0o700);
    }
    if (stats?.isDirectory()) throw refused(entry.name, 'it is a directory');
    if (stats !== null) await unlink(path);
    await symlink(entry.linkTarget ?? '', path);
  }

  /** Writes beside its place first, then renames over it in one step. */
  async #put(
    { path: at, stats }: Confined,
    asked: string,
    body: AsyncIterable<Uint8Array>,
    { mode, exclusive }: PutOptions,
  ): Promise<void> {
    if (stats?.isDirectory()) throw refused(asked, 'it is a directory');
    if (stats !== null && exclusive) throw refused(asked, 'it exists');
    const beside = `${at.slice(0, at.lastIndexOf('/'))}/.sandboxer-${randomBytes(6).toString('hex')}`;
    const handle = await open(beside, WRITE_FLAGS, 0o600);
    try {
      for await (const chunk of body) await handle.writeFile(chunk);
      await handle.chmod(mode ?? (stats?.isFile() ? stats.mode & 0o7777 : 0o644));
      if (exclusive) await link(beside, at);
      else await rename(beside, at);
    } finally {
      await handle.close();
      await unlessAbsent(unlink(beside));
    }
  }

  async *#pack(path: string): AsyncGenerator<TarEntry> {
    const queue = [{ path, name: '' }];
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const { entry, names } = await this.#packOne(next.path, next.name);
      if (entry !== null) yield entry;
      queue.unshift(
        ...names.map((name) => ({
          path: `${next.path}/${name}`,
          name: next.name === '' ? name : `${next.name}/${name}`,
        })),
      );
    }
  }

  async #packOne(path: string, name: string): Promise<{ entry: TarEntry | null; names: string[] }> {
    return await confined(
      this.#root,
      path,
      { followLast: name === '' },
      async ({ path: at, shown, stats }) => {
        if (stats === null) throw notFound(path);
        const shape = {
          mode: stats.mode & 0o777,
          modifiedAtMs: stats.mtimeMs,
          size: 0,
          linkTarget: null,
          body: nothing(),
        };
        if (stats.isDirectory()) {
          const names = (await readdir(at)).sort();
          return { entry: { ...shape, name: name || '.', kind: 'directory' }, names };
        }
        if (stats.isSymbolicLink()) {
          return { entry: { ...shape, name, kind: 'symlink', linkTarget: await readlink(at) }, names: [] };
        }
        if (!stats.isFile()) return { entry: null, names: [] };
        const body = this.#bytes(path, name === '', stats.size);
        return {
          entry: { ...shape, name: name || basename(shown), kind: 'file', size: stats.size, body },
          names: [],
        };
      },
    );
  }

  async *#bytes(path: string, followLast: boolean, size: number): AsyncGenerator<Uint8Array> {
    const handle = await confined(this.#root, path, { followLast }, ({ path: at }) => open(at, READ_FLAGS));
    try {
      for (let position = 0; position < size; ) {
        const wanted = Math.min(CHUNK_BYTES, size - position);
        const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(wanted), 0, wanted, position);
        if (bytesRead === 0) return;
        position += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await handle.close();
    }
  }
}
