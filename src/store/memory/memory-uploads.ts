import type { UploadRecord } from '../../core/assets/upload.ts';
import type { Page } from '../../core/ports/store/page.ts';
import type { UploadQuery, UploadStore } from '../../core/ports/store/upload-store.ts';
import { decodeCursor, encodeCursor } from '../page-cursor.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemoryUploads implements UploadStore {
  readonly #journal: MemoryJournal;
  readonly #rows: MemoryTable<UploadRecord>;
  readonly #users: MemoryTable<readonly string[]>;
  readonly #isPresent: (sandboxUid: string) => Promise<boolean>;

  /** `isPresent`: whether there is such a sandbox and it is not destroyed. */
  constructor(journal: MemoryJournal, isPresent: (sandboxUid: string) => Promise<boolean>) {
    this.#journal = journal;
    this.#rows = new MemoryTable(journal);
    this.#users = new MemoryTable(journal);
    this.#isPresent = isPresent;
  }

  async get(id: string): Promise<UploadRecord | null> {
    return this.#rows.get(id) ?? null;
  }

  async put(record: UploadRecord): Promise<UploadRecord> {
    this.#journal.assertWritable();
    const there = this.#rows.get(record.id);
    const stored = there
      ? { ...there, expiresAt: Math.max(there.expiresAt, record.expiresAt) }
      : { ...record };
    this.#rows.set(record.id, stored);
    return stored;
  }

  async use(uploadId: string, sandboxUid: string): Promise<void> {
    this.#journal.assertWritable();
    const users = this.#users.get(uploadId) ?? [];
    if (!users.includes(sandboxUid)) this.#users.set(uploadId, [...users, sandboxUid]);
  }

  async inUse(id: string): Promise<boolean> {
    for (const uid of this.#users.get(id) ?? []) if (await this.#isPresent(uid)) return true;
    return false;
  }

  async list({ workspaceId, cursor, limit }: UploadQuery): Promise<Page<UploadRecord>> {
    const from = decodeCursor(cursor);
    const behind = [...this.#rows.values()]
      .filter((row) => workspaceId === null || row.workspaceId === workspaceId)
      .sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
      .filter(
        (row) =>
          from === null ||
          (row.createdAt === from.createdAt ? row.id < from.key : row.createdAt < from.createdAt),
      );
    const items = behind.slice(0, limit);
    const last = items.at(-1);
    const more = behind.length > items.length && last !== undefined;
    return { items, nextCursor: more ? encodeCursor({ createdAt: last.createdAt, key: last.id }) : null };
  }

  async totalBytes(workspaceId: string): Promise<number> {
    return [...this.#rows.values()]
      .filter((row) => row.workspaceId === workspaceId)
      .reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  }

  async due(now: number, limit: number): Promise<readonly UploadRecord[]> {
    const due: UploadRecord[] = [];
    const expired = [...this.#rows.values()]
      .filter(({ expiresAt }) => expiresAt <= now)
      .sort((a, b) => a.expiresAt - b.expiresAt || (a.id < b.id ? -1 : 1));
    for (const row of expired) if (due.length < limit && !(await this.inUse(row.id))) due.push(row);
    return due;
  }

  async remove(id: string): Promise<void> {
    this.#journal.assertWritable();
    this.#rows.delete(id);
    this.#users.delete(id);
  }
}
