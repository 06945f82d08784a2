import { globMatcher } from './glob.ts';

/** Rules of `.gitignore` that are in use: `*`, `?`, `[…]`, `**`, `!`, a leading and a trailing slash. */

interface Rule {
  readonly matches: (path: string) => boolean;
  readonly negated: boolean;
  readonly directoriesOnly: boolean;
}

/** Rules of one file, which hold below its directory. */
interface RuleSet {
  /** Directory with a slash at the end; empty for the top. */
  readonly base: string;
  readonly rules: readonly Rule[];
}

/** Removes spaces at the end, unless a backslash stands before them. */
function withoutLastSpaces(line: string): string {
  let end = line.length;
  while (line[end - 1] === ' ') end -= 1;
  return line.slice(0, end < line.length && line[end - 1] === '\\' ? end + 1 : end);
}

function ruleOf(line: string): Rule | null {
  let glob = withoutLastSpaces(line.replace(/\r$/, ''));
  if (glob === '' || glob.startsWith('#')) return null;
  const negated = glob.startsWith('!');
  if (negated) glob = glob.slice(1);
  const directoriesOnly = glob.endsWith('/');
  while (glob.endsWith('/')) glob = glob.slice(0, -1);
  const anchored = glob.includes('/');
  glob = glob.replace(/^\//, '');
  if (glob === '') return null;
  const matches = globMatcher(glob, anchored);
  return matches && { matches, negated, directoriesOnly };
}

function parseRules(text: string): Rule[] {
  return text
    .split('\n')
    .map(ruleOf)
    .filter((rule) => rule !== null);
}

/** Rules that leave paths out of a tree. The last rule that matches decides; a deeper file comes after its parents'. */
export class IgnoreRules {
  readonly #sets: readonly RuleSet[];

  private constructor(sets: readonly RuleSet[]) {
    this.#sets = sets;
  }

  static readonly none = new IgnoreRules([]);

  /** Returns these rules and those of a file in `directory` (`''` for the top). */
  with(directory: string, text: string): IgnoreRules {
    const base = directory === '' ? '' : `${directory}/`;
    return new IgnoreRules([...this.#sets, { base, rules: parseRules(text) }]);
  }

  /** Returns whether `path`, relative to the top and with `/`, is ignored. */
  ignores(path: string, isDirectory: boolean): boolean {
    let ignored = false;
    for (const { base, rules } of this.#sets) {
      if (!path.startsWith(base)) continue;
      const below = path.slice(base.length);
      for (const rule of rules) {
        if (rule.directoriesOnly && !isDirectory) continue;
        if (ignored === rule.negated && rule.matches(below)) ignored = !rule.negated;
      }
    }
    return ignored;
  }
}
