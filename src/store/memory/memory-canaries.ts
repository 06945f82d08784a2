import type { CanaryRecord } from '../../core/hosts/canary.ts';
import type { CanaryStore } from '../../core/ports/store/canary-store.ts';
import { conflict } from '../rejections.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemoryCanaries implements CanaryStore {
  readonly #journal: MemoryJournal;
  readonly #rows: MemoryTable<CanaryRecord>;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#rows = new MemoryTable(journal);
  }

  async get(attemptId: string): Promise<CanaryRecord | null> {
    return this.#rows.get(attemptId) ?? null;
  }

  async list(): Promise<readonly CanaryRecord[]> {
    return [...this.#rows.values()].sort((a, b) => (a.attemptId < b.attemptId ? -1 : 1));
  }

  async insert(record: CanaryRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#rows.has(record.attemptId)) throw conflict(`The canary ${record.attemptId} exists.`);
    this.#rows.set(record.attemptId, record);
  }

  async remove(attemptId: string): Promise<void> {
    this.#journal.assertWritable();
    this.#rows.delete(attemptId);
  }
}
