import type { ProviderKeyStore } from '../../core/ports/store/provider-key-store.ts';
import type { ProviderKeyRecord } from '../../core/tenancy/provider-key.ts';
import { conflict } from '../rejections.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemoryProviderKeys implements ProviderKeyStore {
  readonly #journal: MemoryJournal;
  readonly #rows: MemoryTable<ProviderKeyRecord>;
  readonly #isUsed: (id: string) => boolean;

  constructor(journal: MemoryJournal, isUsed: (id: string) => boolean) {
    this.#journal = journal;
    this.#rows = new MemoryTable(journal);
    this.#isUsed = isUsed;
  }

  async get(id: string): Promise<ProviderKeyRecord | null> {
    return this.#rows.get(id) ?? null;
  }

  async usableBy(workspaceId: string): Promise<readonly ProviderKeyRecord[]> {
    return (await this.list()).filter((key) => key.workspaceId === null || key.workspaceId === workspaceId);
  }

  async list(): Promise<readonly ProviderKeyRecord[]> {
    const place = ({ workspaceId, extensionId }: ProviderKeyRecord) => `${workspaceId ?? ''}\n${extensionId}`;
    return [...this.#rows.values()].sort((a, b) => (place(a) < place(b) ? -1 : 1));
  }

  async insert(record: ProviderKeyRecord): Promise<void> {
    this.#journal.assertWritable();
    const { workspaceId, extensionId } = record;
    for (const other of this.#rows.values())
      if (other.workspaceId === workspaceId && other.extensionId === extensionId)
        throw conflict(`There is a key for ${extensionId} already.`);
    this.#rows.set(record.id, record);
  }

  async update(record: ProviderKeyRecord): Promise<ProviderKeyRecord> {
    this.#journal.assertWritable();
    if (this.#rows.get(record.id)?.version !== record.version)
      throw conflict(`The provider key ${record.id} was changed.`);
    const next = { ...record, version: record.version + 1 };
    this.#rows.set(record.id, next);
    return next;
  }

  async remove(id: string): Promise<void> {
    this.#journal.assertWritable();
    this.#rows.delete(id);
  }

  async isUsed(id: string): Promise<boolean> {
    return this.#isUsed(id);
  }
}
