import type { MemoryJournal } from './memory-journal.ts';

/** Rows by key, with every change undoable. */
export class MemoryTable<T> {
  readonly #rows = new Map<string, T>();
  readonly #journal: MemoryJournal;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
  }

  get(key: string): T | undefined {
    return this.#rows.get(key);
  }

  has(key: string): boolean {
    return this.#rows.has(key);
  }

  values(): IterableIterator<T> {
    return this.#rows.values();
  }

  set(key: string, row: T): void {
    const before = this.#rows.get(key);
    this.#journal.wrote(() => this.#put(key, before));
    this.#rows.set(key, row);
  }

  delete(key: string): void {
    const before = this.#rows.get(key);
    if (before === undefined) return;
    this.#journal.wrote(() => this.#rows.set(key, before));
    this.#rows.delete(key);
  }

  #put(key: string, row: T | undefined): void {
    if (row === undefined) this.#rows.delete(key);
    else this.#rows.set(key, row);
  }
}
