import type { PageCursor } from '../page-cursor.ts';

/** The keys of rows in the order of their creation. Rows mostly arrive in that order, so inserting is appending. */
export class NewestFirst {
  readonly #keys: PageCursor[] = [];

  add(key: PageCursor): void {
    const last = this.#keys.at(-1);
    if (last === undefined || isBefore(last, key)) this.#keys.push(key);
    else this.#keys.splice(this.#indexOf(key), 0, key);
  }

  remove(key: PageCursor): void {
    this.#keys.splice(this.#indexOf(key), 1);
  }

  first(): string | undefined {
    return this.#keys.at(-1)?.key;
  }

  *after(cursor: PageCursor | null): Generator<string> {
    const start = cursor === null ? this.#keys.length : this.#indexOf(cursor);
    for (let i = start - 1; i >= 0; i--) yield (this.#keys[i] as PageCursor).key;
  }

  /** Returns the index of the first key that is not before `key`. */
  #indexOf(key: PageCursor): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBefore(this.#keys[middle] as PageCursor, key)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function isBefore(a: PageCursor, b: PageCursor): boolean {
  return a.createdAt === b.createdAt ? a.key < b.key : a.createdAt < b.createdAt;
}
