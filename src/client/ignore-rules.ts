/** The rules of `.gitignore` that people use: `*`, `?`, `[…]`, `**`, `!`, a leading and a trailing slash. */

interface Rule {
  readonly pattern: RegExp;
  readonly negated: boolean;
  readonly directoriesOnly: boolean;
}

/** The rules of one file, which hold below its directory. */
interface RuleSet {
  /** With a slash at the end; empty for the top. */
  readonly base: string;
  readonly rules: readonly Rule[];
}

function classAt(glob: string, at: number): { text: string; next: number } | null {
  const start = glob[at + 1] === '!' || glob[at + 1] === '^' ? at + 2 : at + 1;
  const end = glob.indexOf(']', start + 1);
  if (end === -1) return null;
  const inside = glob.slice(start, end).replace(/[\\\]^]/g, '\\$&');
  return { text: `[${start === at + 2 ? '^/' : ''}${inside}]`, next: end + 1 };
}

/** A glob without its slashes at the ends, as the source of a regular expression. */
function sourceOf(glob: string): string {
  let source = '';
  for (let at = 0; at < glob.length; ) {
    if (glob.startsWith('**/', at) && (at === 0 || glob[at - 1] === '/')) {
      source += '(?:.*/)?';
      at += 3;
    } else if (glob.startsWith('/**', at) && at + 3 === glob.length) {
      source += '/.+';
      at += 3;
    } else if (glob[at] === '*') {
      source += '[^/]*';
      while (glob[at] === '*') at += 1;
    } else if (glob[at] === '?') {
      source += '[^/]';
      at += 1;
    } else {
      const charClass = glob[at] === '[' ? classAt(glob, at) : null;
      if (glob[at] === '\\' && at + 1 < glob.length) at += 1;
      source += charClass?.text ?? (glob[at] as string).replace(/[.+^${}()|[\]\\/]/g, '\\$&');
      at = charClass?.next ?? at + 1;
    }
  }
  return source;
}

function ruleOf(line: string): Rule | null {
  let glob = line.replace(/\r$/, '').replace(/(?<!\\) +$/, '');
  if (glob === '' || glob.startsWith('#')) return null;
  const negated = glob.startsWith('!');
  if (negated) glob = glob.slice(1);
  const directoriesOnly = glob.endsWith('/');
  glob = glob.replace(/\/+$/, '');
  const anchored = glob.includes('/');
  glob = glob.replace(/^\//, '');
  if (glob === '') return null;
  try {
    const pattern = new RegExp(`^${anchored ? '' : '(?:.*/)?'}${sourceOf(glob)}$`, 's');
    return { pattern, negated, directoriesOnly };
  } catch {
    return null;
  }
}

function parseRules(text: string): Rule[] {
  return text
    .split('\n')
    .map(ruleOf)
    .filter((rule) => rule !== null);
}

/** What to leave out of a tree. The last rule that matches decides; a deeper file comes after its parents'. */
export class IgnoreRules {
  readonly #sets: readonly RuleSet[];

  private constructor(sets: readonly RuleSet[]) {
    this.#sets = sets;
  }

  static readonly none = new IgnoreRules([]);

  /** These rules and those of a file in `directory` (`''` for the top). */
  with(directory: string, text: string): IgnoreRules {
    const base = directory === '' ? '' : `${directory}/`;
    return new IgnoreRules([...this.#sets, { base, rules: parseRules(text) }]);
  }

  /** `path` is relative to the top, with `/`. */
  ignores(path: string, isDirectory: boolean): boolean {
    let ignored = false;
    for (const { base, rules } of this.#sets) {
      if (!path.startsWith(base)) continue;
      const below = path.slice(base.length);
      for (const rule of rules) {
        if (rule.directoriesOnly && !isDirectory) continue;
        if (ignored === rule.negated && rule.pattern.test(below)) ignored = !rule.negated;
      }
    }
    return ignored;
  }
}
