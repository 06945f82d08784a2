/** What a path of an archive is; `open` for a directory that was only named on the way to something else. */
export type PathKind = 'open' | 'directory' | 'file' | 'symlink';

export const TOP = 0;

/**
 * The paths of an archive, part by part: what is kept of a path and what it costs to look it up grow with its length, also
 * where each of its parents is kept as well.
 */
export class PathTable {
  readonly #numbers = new Map<string, number>();
  readonly #kinds: PathKind[] = ['directory'];

  /** Paths, the top included. */
  get size(): number {
    return this.#kinds.length;
  }

  /** The number of what is called `part` in the directory of this number. */
  find(directory: number, part: string): number | undefined {
    return this.#numbers.get(`${directory}/${part}`);
  }

  kind(number: number): PathKind {
    return this.#kinds[number] as PathKind;
  }

  /** `undefined` where nothing is. */
  at(parts: readonly string[]): PathKind | undefined {
    let number: number | undefined = TOP;
    for (const part of parts) {
      number = this.find(number, part);
      if (number === undefined) return undefined;
    }
    return this.kind(number);
  }

  /** Sets what is there. Returns its number. */
  set(directory: number, part: string, kind: PathKind): number {
    const known = this.find(directory, part);
    const number = known ?? this.#kinds.length;
    if (known === undefined) this.#numbers.set(`${directory}/${part}`, number);
    this.#kinds[number] = kind;
    return number;
  }
}
