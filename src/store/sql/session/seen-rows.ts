/**
 * Holds rows of one table as a transaction saw or left them, by their key: an update then writes only the changed columns, and
 * moves only their indexes. That is right where no other transaction can have written the row since: where transactions write one
 * after the other, or are serializable.
 */
export class SeenRows<Row extends object> {
  readonly #rows = new Map<string, Row>();

  get(key: string): Row | undefined {
    return this.#rows.get(key);
  }

  set(key: string, row: Row): void {
    this.#rows.set(key, row);
  }

  delete(key: string): void {
    this.#rows.delete(key);
  }

  /** Returns the columns of `next` to write: all of them where the row was not seen, `null` where none has changed. */
  changes(key: string, next: Row): Partial<Row> | null {
    const stored = this.#rows.get(key);
    if (stored === undefined) return next;
    let changes: Partial<Row> | null = null;
    for (const column in next) {
      const value = next[column];
      if (value === stored[column]) continue;
      changes ??= {};
      changes[column] = value;
    }
    return changes;
  }

  /**
   * Calls `write` with the new columns of `next`, if there are any; it returns whether the row existed. The row is noted before
   * the wait: another update of it may come meanwhile.
   */
  async update(key: string, next: Row, write: (changes: Partial<Row>) => Promise<number>): Promise<boolean> {
    const changes = this.changes(key, next);
    if (changes === null) return true;
    this.#rows.set(key, next);
    let written = 0;
    try {
      written = await write(changes);
    } finally {
      if (written === 0) this.#rows.delete(key);
    }
    return written > 0;
  }

  forgetAll(): void {
    this.#rows.clear();
  }
}
