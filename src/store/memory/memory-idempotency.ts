import type { IdempotencyRecord, IdempotencyStore } from '../../core/ports/store/idempotency-store.ts';
import { conflict } from '../rejections.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemoryIdempotency implements IdempotencyStore {
  readonly #journal: MemoryJournal;
  readonly #rows: MemoryTable<IdempotencyRecord>;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#rows = new MemoryTable(journal);
  }

  async get(workspaceId: string, key: string): Promise<IdempotencyRecord | null> {
    return this.#rows.get(rowKey(workspaceId, key)) ?? null;
  }

  async insert(record: IdempotencyRecord): Promise<void> {
    this.#journal.assertWritable();
    const at = rowKey(record.workspaceId, record.key);
    if (this.#rows.has(at)) throw conflict('The idempotency key is in use.');
    this.#rows.set(at, record);
  }

  async prune(before: number, limit: number): Promise<number> {
    this.#journal.assertWritable();
    const old = [...this.#rows.values()]
      .filter((row) => row.createdAt < before)
      .sort((a, b) => a.createdAt - b.createdAt)
      .slice(0, limit);
    for (const row of old) this.#rows.delete(rowKey(row.workspaceId, row.key));
    return old.length;
  }
}

function rowKey(workspaceId: string, key: string): string {
  return `${workspaceId}\n${key}`;
}
