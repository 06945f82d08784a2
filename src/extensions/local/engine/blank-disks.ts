/**
 * Empty disks of recently requested sizes: each sandbox or volume of limited size begins as a copy, which is mostly holes. Sizes
 * come from requests, so few are kept, and none is larger than the file system that they lie on.
 */
import { execFile } from 'node:child_process';
import {
  closeSync,
  existsSync,
  ftruncateSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SandboxerError } from '../../../contract/errors/errors.ts';

const MIB = 1_048_576;
const MOST_KEPT = 8;
/** The largest ext4 with blocks of 4 KiB. */
const LARGEST_MB = 16 * 1_048_576 - 1;

interface Blank {
  readonly made: Promise<void>;
  /** Number of copies under way: the file stays until they are done. */
  users: number;
}

export class BlankDisks {
  readonly #directory: string;
  readonly #maker: string;
  /** Blanks, least recently used first. */
  readonly #blanks = new Map<number, Blank>();
  #swept = false;

  /** `maker`: path of mkfs.ext4. */
  constructor(directory: string, maker: string) {
    this.#directory = directory;
    this.#maker = maker;
  }

  /** Throws, before anything is made, when this machine has no room for a disk of that size. */
  refuseTooLarge(sizeMb: number, field: string): void {
    const { blocks, bsize } = statfsSync(this.#existing());
    const most = Math.min(LARGEST_MB, Math.floor((blocks * bsize) / MIB));
    if (sizeMb <= most) return;
    throw new SandboxerError('SBX_UNSUPPORTED', `This machine has no disk of ${sizeMb} MiB.`, {
      backend: 'ext.local',
      creation: 'not_created',
      field,
      remedy: `Ask for ${most} MiB or less.`,
    });
  }

  /**
   * Runs `work` with the field that names the blank for the spawner: it exists until `work` has ended. `null`: no limit, no
   * blank.
   */
  async with<T>(sizeMb: number | null, work: (field: { disk?: string }) => Promise<T>): Promise<T> {
    if (sizeMb === null) return await work({});
    this.sweep();
    const blank = this.#blanks.get(sizeMb) ?? { made: this.#make(sizeMb), users: 0 };
    this.#blanks.delete(sizeMb);
    this.#blanks.set(sizeMb, blank);
    blank.users += 1;
    try {
      await blank.made;
      return await work({ disk: join('disks', this.#file(sizeMb)) });
    } catch (error) {
      if (!existsSync(join(this.#directory, this.#file(sizeMb)))) this.#blanks.delete(sizeMb);
      throw error;
    } finally {
      blank.users -= 1;
      this.#evict();
    }
  }

  #file(sizeMb: number): string {
    return `${sizeMb}.ext4`;
  }

  #existing(): string {
    for (let path = this.#directory; ; path = join(path, '..')) if (existsSync(path)) return path;
  }

  /** Removes, once, complete and partial blanks of an earlier process. */
  sweep(): void {
    if (this.#swept) return;
    this.#swept = true;
    for (const name of readdirSync(this.#directory)) rmSync(join(this.#directory, name), { force: true });
  }

  #evict(): void {
    for (const [sizeMb, { users }] of [...this.#blanks]) {
      if (this.#blanks.size <= MOST_KEPT) return;
      if (users > 0) continue;
      this.#blanks.delete(sizeMb);
      rmSync(join(this.#directory, this.#file(sizeMb)), { force: true });
    }
  }

  async #make(sizeMb: number): Promise<void> {
    const temporary = join(this.#directory, `${this.#file(sizeMb)}.${process.pid}`);
    try {
      const file = openSync(temporary, 'w', 0o600);
      try {
        ftruncateSync(file, sizeMb * MIB);
      } finally {
        closeSync(file);
      }
      const lazily = 'lazy_itable_init=1,lazy_journal_init=1,nodiscard';
      await promisify(execFile)(this.#maker, [
        '-q',
        '-F',
        '-m',
        '0',
        '-E',
        lazily,
        '-J',
        'size=4',
        temporary,
      ]);
      renameSync(temporary, join(this.#directory, this.#file(sizeMb)));
    } finally {
      rmSync(temporary, { force: true });
    }
  }
}
