import { constants } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hostPath } from '../archive/file-name.ts';
import { dockerRules } from '../archive/ignore/docker-ignore.ts';
import { IgnoreRules } from '../archive/ignore/ignore-rules.ts';
import { looksSecret } from '../archive/ignore/secret-names.ts';

export interface PackChoice {
  /**
   * Leaves out paths in `.gitignore`, `.dockerignore` (of the top) and `.sandboxerignore`; each later file may take back an
   * exclusion of an earlier one. Also leaves out `.git` and files that look like secrets, unless the caller asks for them: the
   * directory may hold files from a sandbox, whose ignore files take neither back. `false` packs everything.
   */
  readonly ignore?: boolean | undefined;
  /** Includes `.git`. */
  readonly git?: boolean | undefined;
  /** Includes `.env` and other likely secrets: all of them, or those that these patterns name, as in `.gitignore`. */
  readonly secrets?: boolean | readonly string[] | undefined;
}

export type LeftOut = 'ignored' | 'git' | 'secret';

/** Reads the file as git does, not through a link: a link leads to a file like any other, which a sandbox may have written. */
async function rulesAt(path: string): Promise<string> {
  try {
    const flag = constants.O_RDONLY | constants.O_NOFOLLOW;
    return await readFile(hostPath(path), { encoding: 'utf8', flag });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR') return '';
    throw new Error(`The rules of ${path} cannot be read (${code}): put a file in its place, or remove it.`);
  }
}

/** Paths of a directory of this machine that are not packed, by its present ignore files. */
export class PackRules {
  readonly #top: string;
  readonly #choice: PackChoice;
  /** Likely secrets that are packed all the same. */
  readonly #asked: IgnoreRules;
  readonly #below = new Map<string, Promise<IgnoreRules>>();

  constructor(top: string, choice: PackChoice) {
    this.#top = top;
    this.#choice = choice;
    const { secrets } = choice;
    const patterns = secrets === true ? ['*'] : secrets || [];
    this.#asked = IgnoreRules.none.with('', patterns.join('\n'));
  }

  /** Judges a path whose parents are not left out. */
  async leavesOut(path: string, isDirectory: boolean): Promise<LeftOut | null> {
    const { ignore, git } = this.#choice;
    if (ignore === false) return null;
    const slash = path.lastIndexOf('/');
    if (path.slice(slash + 1) === '.git' && git !== true) return 'git';
    const rules = await this.#rulesIn(slash < 0 ? '' : path.slice(0, slash));
    if (rules.ignores(path, isDirectory)) return 'ignored';
    return looksSecret(path) && !this.#asked.ignores(path, isDirectory) ? 'secret' : null;
  }

  /** Judges any path, whether it exists here or not. */
  async leavesOutPath(path: string, isDirectory: boolean): Promise<LeftOut | null> {
    const parts = path.split('/');
    for (let count = 1; count <= parts.length; count += 1) {
      const part = parts.slice(0, count).join('/');
      const leftOut = await this.leavesOut(part, count < parts.length || isDirectory);
      if (leftOut !== null) return leftOut;
    }
    return null;
  }

  #rulesIn(directory: string): Promise<IgnoreRules> {
    const known = this.#below.get(directory);
    if (known) return known;
    const rules = this.#read(directory);
    this.#below.set(directory, rules);
    return rules;
  }

  async #read(directory: string): Promise<IgnoreRules> {
    const slash = directory.lastIndexOf('/');
    const above =
      directory === '' ? IgnoreRules.none : await this.#rulesIn(slash < 0 ? '' : directory.slice(0, slash));
    const textOf = (name: string) => rulesAt(join(this.#top, directory, name));
    const docker = directory === '' ? dockerRules(await textOf('.dockerignore')) : '';
    return above
      .with(directory, await textOf('.gitignore'))
      .with(directory, docker)
      .with(directory, await textOf('.sandboxerignore'));
  }
}
