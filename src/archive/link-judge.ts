/**
 * Judges the links of a tree, as the kernel resolves them. Every unpacker and packer uses it.
 *
 * A link is accepted when its target is relative, its first `..` stay below the top, and every later `..` goes up from a real
 * directory of the tree: never from a link, a file, or a name that does not exist yet. Then no chain of accepted links leads out,
 * whatever their order and whichever of them arrive later: each link goes up from the directory that holds it, and the rest only
 * goes down.
 */

/** Kind of a path of a tree, without following it. `null`: nothing is there. */
export type Standing = 'directory' | 'file' | { readonly linkTo: string } | null;

/** Returns the kind of a path relative to the top whose parts but the last are directories. */
export type Look = (path: string) => Standing;

export type Lead = { readonly to: string } | { readonly refused: string };

/** Limit of the kernel on the length of a target. */
const LONGEST_TARGET = 4_095;

/** Limit of the kernel on links in one path. */
const MOST_LINKS = 40;

class Refused extends Error {
  override readonly name = 'Refused';
}

export function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}

class Walk {
  readonly #look: Look;
  #followed = 0;
  /** The rest after a missing name is text: no path can be looked up. */
  #isNowhere = false;

  constructor(look: Look) {
    this.#look = look;
  }

  from(directory: readonly string[], target: string): string[] {
    if (target.startsWith('/')) throw new Refused('outside of the tree');
    let at = [...directory];
    let behind: string | null = null;
    for (const part of partsOf(target)) {
      if (part === '..') {
        if (behind !== null) throw new Refused(`up from ${behind}, which is not a directory of the tree`);
        if (at.pop() === undefined) throw new Refused('outside of the tree');
        continue;
      }
      at.push(part);
      // An unknown tree has no kinds to look up: only known ones need the path.
      if (this.#look === ANY_TREE && !this.#isNowhere) continue;
      const path = at.join('/');
      const there = this.#isNowhere ? null : this.#look(path);
      if (there === 'directory') continue;
      behind ??= path;
      if (there === null || there === 'file' || this.#followed >= MOST_LINKS) this.#isNowhere = true;
      else {
        this.#followed += 1;
        at = this.from(at.slice(0, -1), there.linkTo);
      }
    }
    return at;
  }
}

/**
 * Judges one link against the content of the tree. `name` is its path below the top; the directories of that path must be real
 * ones. `to` is its destination, also without inner `..`.
 */
export function judgeLink(look: Look, name: string, target: string): Lead {
  if (target === '' || target.length > LONGEST_TARGET || target.includes('\0')) return { refused: 'nowhere' };
  try {
    return { to: new Walk(look).from(partsOf(name).slice(0, -1), target).join('/') };
  } catch (error) {
    if (error instanceof Refused) return { refused: error.message };
    throw error;
  }
}

/** Judges a link for a tree that is not known yet: refuses only a link that no tree could make right. */
export const ANY_TREE: Look = () => 'directory';

/** Returns whether a `..` follows a name: such a target depends on the kind of that name. */
export function goesUpAgain(target: string): boolean {
  const parts = partsOf(target);
  const first = parts.findIndex((part) => part !== '..');
  return first !== -1 && parts.includes('..', first);
}

/** Returns the directories, below the top, that a target needs to stay directories. None where no `..` follows a name. */
export function goesUpFrom(name: string, target: string): string[] {
  const at = partsOf(name).slice(0, -1);
  const left: string[] = [];
  const needed: string[] = [];
  for (const part of partsOf(target)) {
    if (part !== '..') {
      at.push(part);
      left.push(at.join('/'));
    } else {
      at.pop();
      needed.push(...left);
    }
  }
  return needed;
}

/** Returns the target without a `..` behind a name; right only where all these names are directories. */
export function straightened(target: string): string {
  const parts: string[] = [];
  for (const part of partsOf(target)) {
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop();
    else parts.push(part);
  }
  return parts.join('/') || '.';
}
