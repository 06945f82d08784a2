/** Kind of a path of an archive; `open` for a directory that was only named as a parent. */
export type PathKind = 'open' | 'directory' | 'file' | 'symlink';

export const TOP = 0;

/**
 * Table of the paths of an archive, part by part: the memory and the lookup cost of a path grow with its length, also where each
 * of its parents is stored as well.
 */
export class PathTable {
  readonly #numbers = new Map<string, number>();
  readonly #kinds: PathKind[] = ['directory'];

  /** Number of paths, the top included. */
  get size(): number {
    return this.#kinds.length;
  }

  /** Returns the number of the entry called `part` in the directory of this number. */
  find(directory: number, part: string): number | undefined {
    return this.#numbers.get(`${directory}/${part}`);
  }

  kind(number: number): PathKind {
    return this.#kinds[number] as PathKind;
  }

  /** Returns `undefined` where nothing is. */
  at(parts: readonly string[]): PathKind | undefined {
    let number: number | undefined = TOP;
    for (const part of parts) {
      number = this.find(number, part);
      if (number === undefined) return undefined;
    }
    return this.kind(number);
  }

  /** Sets the kind of a path. Returns its number. */
  set(directory: number, part: string, kind: PathKind): number {
    const known = this.find(directory, part);
    const number = known ?? this.#kinds.length;
    if (known === undefined) this.#numbers.set(`${directory}/${part}`, number);
    this.#kinds[number] = kind;
    return number;
  }
}
