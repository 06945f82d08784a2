import { ANY_TREE, goesUpAgain, judgeLink, partsOf } from './link-judge.ts';
import { PathTable, TOP } from './path-table.ts';

/** Paths of one archive: files, directories and links, directories that no entry names included. */
const MOST_PATHS = 2_000_000;

/**
 * Checks the links of one archive, whatever order its entries have. `take` refuses at once a link that no later entry can make
 * right; `finish` judges the links whose targets depend on later directories.
 */
export class ArchiveLinks {
  readonly #paths = new PathTable();
  readonly #open: { readonly name: string; readonly target: string }[] = [];

  /** Returns `null`, or why the entry is refused. `name` is relative and has no `..`. */
  take(name: string, kind: 'file' | 'directory' | 'symlink', target: string | null): string | null {
    const parts = partsOf(name);
    const path = parts.join('/');
    const reason = this.#place(parts, kind);
    if (reason !== null || kind !== 'symlink') return reason;
    const lead = judgeLink(ANY_TREE, path, target ?? '');
    if ('refused' in lead) return `${name} → ${target} leads ${lead.refused}`;
    if (goesUpAgain(target ?? '')) this.#open.push({ name: path, target: target ?? '' });
    return null;
  }

  /** Called after the last entry: returns `null`, or why the archive is refused. */
  finish(): string | null {
    const look = (path: string) => {
      const kind = this.#paths.at(partsOf(path));
      return kind === 'open' || kind === 'directory' ? 'directory' : null;
    };
    for (const { name, target } of this.#open) {
      const lead = judgeLink(look, name, target);
      if ('refused' in lead) return `${name} → ${target} leads ${lead.refused}`;
    }
    return null;
  }

  /** A path that is a link or a directory in one entry has the same kind in every other. */
  #place(parts: readonly string[], kind: 'file' | 'directory' | 'symlink'): string | null {
    if (this.#paths.size + parts.length > MOST_PATHS) return `there are more than ${MOST_PATHS} paths`;
    let directory = TOP;
    for (const [level, part] of parts.slice(0, -1).entries()) {
      const known = this.#paths.find(directory, part);
      if (known !== undefined && this.#paths.kind(known) === 'symlink')
        return `${parts.join('/')} lies behind the link ${parts.slice(0, level + 1).join('/')}`;
      directory = known ?? this.#paths.set(directory, part, 'open');
    }
    const last = parts.at(-1);
    if (last === undefined) return null;
    const known = this.#paths.find(directory, last);
    const clash = known === undefined ? null : clashOf(this.#paths.kind(known), kind);
    if (clash !== null) return `${parts.join('/')} is ${clash}`;
    this.#paths.set(directory, last, kind);
    return null;
  }
}

function clashOf(known: 'open' | 'file' | 'directory' | 'symlink', kind: string): string | null {
  const isDirectory = known === 'open' || known === 'directory';
  if (kind === 'directory') return known === 'symlink' ? 'a link and a directory' : null;
  if (isDirectory) return `a directory and a ${kind}`;
  return known === 'symlink' && kind === 'file' ? 'a link and a file' : null;
}
