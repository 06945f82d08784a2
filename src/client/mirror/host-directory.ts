import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import {
  closeSync,
  constants,
  copyFileSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { bytesOfName, hostPath, nameOfBytes } from '../../archive/file-name.ts';
import type { TreeEntry } from './tree-entry.ts';
import { digestOfFile, entryOf, sameEntry } from './tree-entry.ts';

/** Error: another kind of file stands where a file was to be written. */
export class InTheWay extends Error {
  override readonly name = 'InTheWay';
}

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

type Path = string | Buffer;

function found(path: Path): Stats | null {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null;
}

/** Handle of a directory that stays the opened one, whatever happens to its name meanwhile. */
class Held {
  readonly #fd: number | null;
  readonly #path: Path;

  constructor(path: Path) {
    this.#path = path;
    if (!found(path)?.isDirectory()) throw new InTheWay('a part of its path is not a directory');
    this.#fd = process.platform === 'linux' ? openSync(path, DIRECTORY) : null;
  }

  at(name: string): Path {
    const here = this.#fd === null ? this.#path : `/proc/self/fd/${this.#fd}`;
    return hostPath(join(typeof here === 'string' ? here : nameOfBytes(here), name));
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
  }
}

/**
 * Writes below one directory of this machine and nowhere else: each part of a path is opened without following links, files
 * appear whole under their name, and only where the compared file still stands.
 */
export class HostDirectory {
  readonly #top: string;

  constructor(top: string) {
    this.#top = top;
  }

  async write(
    path: string,
    expected: TreeEntry | undefined,
    entry: TreeEntry,
    content: string,
  ): Promise<void> {
    await this.#in(path, true, async (parent, name) => {
      await this.#requireExpected(parent.at(name), expected);
      if (entry.kind === 'directory') {
        if (!found(parent.at(name))) mkdirSync(parent.at(name));
        return;
      }
      if (expected?.kind === 'directory') throw new InTheWay('there is a directory in its place');
      const draft = parent.at(`.${randomBytes(6).toString('hex')}.sandboxer`);
      try {
        if (entry.kind === 'symlink') symlinkSync(bytesOfName(entry.content), draft);
        else {
          copyFileSync(content, draft, constants.COPYFILE_EXCL);
          await chmod(draft, this.#modeFor(parent.at(name), entry.executable));
        }
        await this.#requireExpected(parent.at(name), expected);
        renameSync(draft, parent.at(name));
      } catch (error) {
        if (found(draft)) unlinkSync(draft);
        throw error;
      }
    });
  }

  /** Removes a directory only when it is empty. */
  async remove(path: string, expected: TreeEntry | undefined): Promise<void> {
    await this.#in(path, false, async (parent, name) => {
      await this.#requireExpected(parent.at(name), expected);
      if (expected?.kind !== 'directory') unlinkSync(parent.at(name));
      else {
        try {
          rmdirSync(parent.at(name));
        } catch {
          throw new InTheWay('it holds files that are only here');
        }
      }
    });
  }

  /** Returns a mode without special bits, and without new rights for others. */
  #modeFor(path: Path, executable: boolean): number {
    const before = found(path);
    const base = before?.isFile() ? before.mode & 0o666 : 0o666 & ~process.umask();
    return executable ? base | ((base & 0o444) >> 2) : base;
  }

  async #requireExpected(path: Path, expected: TreeEntry | undefined): Promise<void> {
    const stats = found(path);
    const now = stats === null ? undefined : await this.#entryAt(path, stats);
    if (now === null || !sameEntry(now, expected)) throw new InTheWay('it changed here meanwhile');
  }

  async #entryAt(path: Path, stats: Stats): Promise<TreeEntry | null> {
    if (stats.isDirectory()) return entryOf('directory', stats.mode, null, null);
    if (stats.isSymbolicLink()) {
      const target = nameOfBytes(readlinkSync(path, { encoding: 'buffer' }));
      return entryOf('symlink', stats.mode, null, target);
    }
    return stats.isFile() ? entryOf('file', stats.mode, await digestOfFile(path), null) : null;
  }

  async #in(path: string, make: boolean, work: (parent: Held, name: string) => Promise<void>): Promise<void> {
    const parts = path.split('/');
    const name = parts.pop() as string;
    if ([...parts, name].some((part) => part === '' || part === '.' || part === '..')) {
      throw new InTheWay('its path is not one');
    }
    let held = new Held(this.#top);
    try {
      for (const part of parts) {
        if (make && !found(held.at(part))) mkdirSync(held.at(part));
        const next = new Held(held.at(part));
        held.close();
        held = next;
      }
      await work(held, name);
    } finally {
      held.close();
    }
  }
}
