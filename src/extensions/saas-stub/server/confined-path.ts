import type { Stats } from 'node:fs';
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { lstat, mkdir, open, readlink } from 'node:fs/promises';
import { SandboxerError } from '../../../contract/errors/errors.ts';

const DIRECTORY_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const MOST_LINKS = 40;

export interface ConfinedOptions {
  /** Whether a link at the end of the path is followed too. */
  readonly followLast?: boolean;
  readonly makeParents?: boolean;
}

/** A place below the root, found without ever leaving it. */
export interface Confined {
  /** Path through an open directory: a directory that is replaced by a link meanwhile has no effect. */
  readonly path: string;
  /** The path as programs inside know it. */
  readonly shown: string;
  readonly stats: Stats | null;
  readonly isRoot: boolean;
}

export function notFound(path: string): SandboxerError {
  return new SandboxerError('SBX_PATH_NOT_FOUND', `There is no ${path}`);
}

export function refused(path: string, why: string): SandboxerError {
  return new SandboxerError('SBX_PATH_REFUSED', `${path}: ${why}`);
}

export async function unlessAbsent<Value>(work: Promise<Value>): Promise<Value | null> {
  return await work.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}

/** Returns the components. Absolute paths start at the root; those that programs inside see are understood as well. */
function startOf(root: string, path: string): string[] {
  const known = path === root || path.startsWith(`${root}/`);
  return partsOf(known ? path.slice(root.length) : path);
}

class Walk {
  readonly #root: string;
  readonly #asked: string;
  readonly #options: ConfinedOptions;
  readonly #open: { handle: FileHandle; name: string }[] = [];
  #links = 0;

  constructor(root: string, asked: string, options: ConfinedOptions) {
    this.#root = root;
    this.#asked = asked;
    this.#options = options;
  }

  async find(): Promise<Confined> {
    await this.#enter(this.#root, '');
    const queue = startOf(this.#root, this.#asked);
    for (let part = queue.shift(); part !== undefined; part = queue.shift()) {
      if (part === '..') {
        if (this.#open.length === 1) throw refused(this.#asked, 'it leads out of the sandbox');
        await this.#open.pop()?.handle.close();
        continue;
      }
      const path = `/proc/self/fd/${this.#open.at(-1)?.handle.fd}/${part}`;
      const stats = await unlessAbsent(lstat(path));
      const last = queue.length === 0;
      if (stats?.isSymbolicLink() && (!last || this.#options.followLast === true)) {
        queue.unshift(...(await this.#linked(path)));
      } else if (last) {
        return { path, shown: this.#shown(part), stats, isRoot: false };
      } else {
        await this.#descend(path, part, stats);
      }
    }
    const top = this.#open.at(-1);
    const path = `/proc/self/fd/${top?.handle.fd}/.`;
    return { path, shown: this.#shown(), stats: await lstat(path), isRoot: this.#open.length === 1 };
  }

  async close(): Promise<void> {
    for (const { handle } of this.#open.splice(0)) await handle.close();
  }

  #shown(...last: string[]): string {
    return [this.#root, ...this.#open.slice(1).map(({ name }) => name), ...last].join('/');
  }

  async #enter(path: string, name: string): Promise<void> {
    this.#open.push({ handle: await open(path, DIRECTORY_FLAGS), name });
  }

  async #descend(path: string, part: string, stats: Stats | null): Promise<void> {
    if (stats === null) {
      if (this.#options.makeParents !== true) throw notFound(this.#asked);
      await mkdir(path);
    } else if (!stats.isDirectory()) {
      throw refused(this.#asked, `${part} is not a directory`);
    }
    await this.#enter(path, part);
  }

  async #linked(path: string): Promise<string[]> {
    this.#links += 1;
    if (this.#links > MOST_LINKS) throw refused(this.#asked, 'it has too many links');
    const target = await readlink(path);
    if (!target.startsWith('/')) return partsOf(target);
    if (target !== this.#root && !target.startsWith(`${this.#root}/`)) {
      throw refused(this.#asked, 'a link leads out of the sandbox');
    }
    for (const { handle } of this.#open.splice(1)) await handle.close();
    return startOf(this.#root, target);
  }
}

/** Finds `path` below `root` component by component and passes it to `use`. */
export async function confined<Value>(
  root: string,
  path: string,
  options: ConfinedOptions,
  use: (place: Confined) => Promise<Value>,
): Promise<Value> {
  const walk = new Walk(root, path, options);
  try {
    return await use(await walk.find());
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw notFound(path);
    if (
      [
        'ENOTDIR',
        'ELOOP',
        'EISDIR',
        'ENOTEMPTY',
        'EEXIST',
        'EINVAL',
        'ENAMETOOLONG',
        'EACCES',
        'EPERM',
        'EBUSY',
        'EXDEV',
        'ENXIO',
      ].includes(code ?? '')
    ) {
      throw refused(path, code ?? '');
    }
    throw error;
  } finally {
    await walk.close();
  }
}
