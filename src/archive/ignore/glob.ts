/**
 * The globs of `.gitignore` without backtracking: all ways through the pattern are followed at once, one character of the
 * path after the other. The work is at most pattern × path, where a regular expression tries every combination of where
 * each `*` ends.
 */

type Step =
  /** Matches one character. */
  | { readonly kind: 'one'; fits(character: string): boolean }
  /** Matches any number of fitting characters, none included. */
  | { readonly kind: 'many'; fits(character: string): boolean }
  /** Matches the next `count` steps, or none of them. */
  | { readonly kind: 'maybe'; readonly count: number };

const anything = () => true;
const noSlash = (character: string) => character !== '/';
const only = (wanted: string) => (character: string) => character === wanted;
const SLASH: Step = { kind: 'one', fits: only('/') };
/** Matches directories, or none: `**` and a slash. */
const DIRECTORIES: readonly Step[] = [{ kind: 'maybe', count: 2 }, { kind: 'many', fits: anything }, SLASH];

function classAt(glob: string, at: number): { step: Step; next: number } | null {
  const negated = glob[at + 1] === '!' || glob[at + 1] === '^';
  const start = at + (negated ? 2 : 1);
  const end = glob.indexOf(']', start + 1);
  if (end === -1) return null;
  const inside = glob.slice(start, end).replace(/[\\\]^]/g, '\\$&');
  const characters = new RegExp(`[${negated ? '^/' : ''}${inside}]`);
  return { step: { kind: 'one', fits: (character) => characters.test(character) }, next: end + 1 };
}

/** Throws `SyntaxError` for a class such as `[z-a]`. */
function stepsOf(glob: string): Step[] {
  const steps: Step[] = [];
  for (let at = 0; at < glob.length; ) {
    if (glob.startsWith('**/', at) && (at === 0 || glob[at - 1] === '/')) {
      steps.push(...DIRECTORIES);
      while (glob.startsWith('**/', at)) at += 3;
    } else if (glob.startsWith('/**', at) && at + 3 === glob.length) {
      steps.push(SLASH, { kind: 'one', fits: anything }, { kind: 'many', fits: anything });
      at += 3;
    } else if (glob[at] === '*') {
      steps.push({ kind: 'many', fits: noSlash });
      while (glob[at] === '*') at += 1;
    } else if (glob[at] === '?') {
      steps.push({ kind: 'one', fits: noSlash });
      at += 1;
    } else {
      const found = glob[at] === '[' ? classAt(glob, at) : null;
      if (glob[at] === '\\' && at + 1 < glob.length) at += 1;
      steps.push(found?.step ?? { kind: 'one', fits: only(glob[at] as string) });
      at = found?.next ?? at + 1;
    }
  }
  return steps;
}

const SPECIAL = /[*?[\\]/;

/** Steps that a path may be at, each once. */
class Places {
  readonly #steps: readonly Step[];
  readonly #seen: Uint32Array;
  #round = 0;
  list: number[] = [];

  constructor(steps: readonly Step[]) {
    this.#steps = steps;
    this.#seen = new Uint32Array(steps.length + 1);
    this.#enter(this.list, 0);
  }

  /** Returns whether all steps can be passed. */
  get isAtEnd(): boolean {
    return this.list.includes(this.#steps.length);
  }

  take(character: string): void {
    const next: number[] = [];
    this.#round += 1;
    for (const at of this.list) {
      const step = this.#steps[at];
      if (!step || step.kind === 'maybe' || !step.fits(character)) continue;
      this.#enter(next, step.kind === 'many' ? at : at + 1);
    }
    this.list = next;
  }

  #enter(list: number[], from: number): void {
    const waiting = [from];
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      if (this.#seen[at] === this.#round + 1) continue;
      this.#seen[at] = this.#round + 1;
      const step = this.#steps[at];
      if (step?.kind === 'maybe') waiting.push(at + 1, at + 1 + step.count);
      else {
        list.push(at);
        if (step?.kind === 'many') waiting.push(at + 1);
      }
    }
  }
}

/**
 * Returns whether a path fits. `isAnchored`: from its beginning, not from any of its directories. Returns `null` for a glob that
 * cannot be read.
 */
export function globMatcher(glob: string, isAnchored: boolean): ((path: string) => boolean) | null {
  if (!SPECIAL.test(glob)) {
    if (isAnchored) return (path) => path === glob;
    return (path) => path === glob || path.endsWith(`/${glob}`);
  }
  let steps: Step[];
  try {
    steps = [...(isAnchored ? [] : DIRECTORIES), ...stepsOf(glob)];
  } catch {
    return null;
  }
  return (path) => {
    const places = new Places(steps);
    for (let at = 0; at < path.length && places.list.length > 0; at += 1) places.take(path[at] as string);
    return places.isAtEnd;
  };
}
