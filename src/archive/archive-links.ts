import { ANY_TREE, goesUpAgain, judgeLink, partsOf } from './link-judge.ts';

/**
 * The links of one archive, in whatever order its entries come. `take` refuses at once what the rest of the archive cannot
 * make right; `finish` judges the links whose targets depend on directories that may come later.
 */
export class ArchiveLinks {
  readonly #directories = new Set<string>(['']);
  readonly #links = new Set<string>();
  readonly #open: { readonly name: string; readonly target: string }[] = [];

  /** `null`, or why the entry is refused. `name` is relative and has no `..`. */
  take(name: string, kind: 'file' | 'directory' | 'symlink', target: string | null): string | null {
    const parts = partsOf(name);
    const path = parts.join('/');
    const reason = this.#parents(parts) ?? this.#itself(path, kind);
    if (reason !== null || kind !== 'symlink') return reason;
    const lead = judgeLink(ANY_TREE, path, target ?? '');
    if ('refused' in lead) return `${name} → ${target} leads ${lead.refused}`;
    if (goesUpAgain(target ?? '')) this.#open.push({ name: path, target: target ?? '' });
    return null;
  }

  /** After the last entry: `null`, or why the archive is refused. */
  finish(): string | null {
    const look = (path: string) => (this.#directories.has(path) ? 'directory' : null);
    for (const { name, target } of this.#open) {
      const lead = judgeLink(look, name, target);
      if ('refused' in lead) return `${name} → ${target} leads ${lead.refused}`;
    }
    return null;
  }

  #parents(parts: readonly string[]): string | null {
    for (let count = parts.length - 1; count > 0; count -= 1) {
      const parent = parts.slice(0, count).join('/');
      if (this.#links.has(parent)) return `${parts.join('/')} lies behind the link ${parent}`;
      if (this.#directories.has(parent)) return null;
      this.#directories.add(parent);
    }
    return null;
  }

  /** A path that is a link or a directory in one entry is nothing else in another. */
  #itself(path: string, kind: 'file' | 'directory' | 'symlink'): string | null {
    if (kind === 'directory') {
      if (this.#links.has(path)) return `${path} is a link and a directory`;
      this.#directories.add(path);
      return null;
    }
    if (this.#directories.has(path)) return `${path} is a directory and a ${kind}`;
    if (kind === 'symlink') this.#links.add(path);
    else if (this.#links.has(path)) return `${path} is a link and a file`;
    return null;
  }
}
