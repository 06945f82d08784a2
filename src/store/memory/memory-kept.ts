import type { KeptResource } from '../../core/assets/kept-resource.ts';
import type { KeptStore } from '../../core/ports/store/kept-store.ts';
import { conflict } from '../rejections.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemoryKept<R extends KeptResource> implements KeptStore<R> {
  readonly #journal: MemoryJournal;
  readonly #noun: string;
  readonly #rows: MemoryTable<R>;

  constructor(journal: MemoryJournal, noun: string) {
    this.#journal = journal;
    this.#noun = noun;
    this.#rows = new MemoryTable(journal);
  }

  async get(id: string): Promise<R | null> {
    return this.#rows.get(id) ?? null;
  }

  async insert(record: R): Promise<void> {
    this.#journal.assertWritable();
    if (this.#rows.has(record.id)) throw conflict(`The ${this.#noun} ${record.id} exists.`);
    this.#rows.set(record.id, record);
  }

  async update(record: R): Promise<R> {
    this.#journal.assertWritable();
    if (this.#rows.get(record.id)?.version !== record.version)
      throw conflict(`The ${this.#noun} ${record.id} was changed.`);
    const next = { ...record, version: record.version + 1 };
    this.#rows.set(record.id, next);
    return next;
  }

  async remove(id: string): Promise<void> {
    this.#journal.assertWritable();
    this.#rows.delete(id);
  }

  async list(workspaceId: string | null): Promise<readonly R[]> {
    return this.#sorted((row) => workspaceId === null || row.workspaceId === workspaceId || row.shared);
  }

  async due(now: number, limit: number): Promise<readonly R[]> {
    const due = this.#sorted(
      (row) => row.state === 'deleting' || (row.expiresAt !== null && row.expiresAt <= now),
    );
    return due.slice(0, limit);
  }

  #sorted(keep: (row: R) => boolean): R[] {
    return [...this.#rows.values()]
      .filter(keep)
      .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  }
}
