import type { WebhookRecord } from '../../core/events/webhook.ts';
import type { WebhookStore } from '../../core/ports/store/webhook-store.ts';
import { conflict } from '../rejections.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemoryWebhooks implements WebhookStore {
  readonly #journal: MemoryJournal;
  readonly #rows: MemoryTable<WebhookRecord>;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#rows = new MemoryTable(journal);
  }

  async get(id: string): Promise<WebhookRecord | null> {
    return this.#rows.get(id) ?? null;
  }

  async insert(record: WebhookRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#rows.has(record.id)) throw conflict(`The webhook ${record.id} exists.`);
    this.#rows.set(record.id, record);
  }

  async update(record: WebhookRecord): Promise<WebhookRecord> {
    this.#journal.assertWritable();
    if (this.#rows.get(record.id)?.version !== record.version) {
      throw conflict(`The webhook ${record.id} was changed.`);
    }
    const next = { ...record, version: record.version + 1 };
    this.#rows.set(record.id, next);
    return next;
  }

  async remove(id: string): Promise<void> {
    this.#journal.assertWritable();
    this.#rows.delete(id);
  }

  async list(workspaceId: string | null): Promise<readonly WebhookRecord[]> {
    return [...this.#rows.values()]
      .filter((record) => workspaceId === null || record.workspaceId === workspaceId)
      .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  }
}
