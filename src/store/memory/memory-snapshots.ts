import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import type { Page } from '../../core/ports/store/page.ts';
import type { SnapshotQuery, SnapshotStore } from '../../core/ports/store/snapshot-store.ts';
import { decodeCursor, encodeCursor } from '../page-cursor.ts';
import { conflict } from '../rejections.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemorySnapshots implements SnapshotStore {
  readonly #journal: MemoryJournal;
  readonly #present: MemoryTable<SnapshotRecord>;
  readonly #deleted: MemoryTable<SnapshotRecord>;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#present = new MemoryTable(journal);
    this.#deleted = new MemoryTable(journal);
  }

  /** Whether a snapshot that is not deleted uses the key. */
  useKey(providerKeyId: string): boolean {
    return [...this.#present.values()].some((row) => row.providerKeyId === providerKeyId);
  }

  async get(id: string): Promise<SnapshotRecord | null> {
    return this.#find(id) ?? null;
  }

  async insert(record: SnapshotRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#find(record.id)) throw conflict(`The snapshot ${record.id} exists.`);
    this.#put(record);
  }

  async update(record: SnapshotRecord): Promise<SnapshotRecord> {
    this.#journal.assertWritable();
    const stored = this.#find(record.id);
    if (stored?.version !== record.version) throw conflict(`The snapshot ${record.id} was changed.`);
    const next = { ...record, version: record.version + 1 };
    this.#present.delete(record.id);
    this.#deleted.delete(record.id);
    this.#put(next);
    return next;
  }

  async list(query: SnapshotQuery): Promise<Page<SnapshotRecord>> {
    const cursor = decodeCursor(query.cursor);
    const behind = [...this.#present.values()]
      .filter((row) => query.workspaceId === null || row.workspaceId === query.workspaceId)
      .filter((row) => query.sandboxUid === undefined || row.sandboxUid === query.sandboxUid)
      .sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
      .filter((row) => cursor === null || isBehind(row, cursor));
    const items = behind.slice(0, query.limit);
    const last = items.at(-1);
    const more = behind.length > items.length && last !== undefined;
    return { items, nextCursor: more ? encodeCursor({ createdAt: last.createdAt, key: last.id }) : null };
  }

  async dueDeletion(now: number, limit: number): Promise<readonly SnapshotRecord[]> {
    return [...this.#present.values()]
      .filter((row) => row.state === 'deleting' || (row.expiresAt !== null && row.expiresAt <= now))
      .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  async usage(workspaceId: string): Promise<{ count: number; bytes: number }> {
    const rows = [...this.#present.values()].filter((row) => row.workspaceId === workspaceId);
    return { count: rows.length, bytes: rows.reduce((sum, row) => sum + (row.sizeBytes ?? 0), 0) };
  }

  async prune(before: number, limit: number): Promise<number> {
    this.#journal.assertWritable();
    const old = [...this.#deleted.values()]
      .filter((row) => row.deletedAt !== null && row.deletedAt < before)
      .sort((a, b) => (a.deletedAt as number) - (b.deletedAt as number) || (a.id < b.id ? -1 : 1))
      .slice(0, limit);
    for (const row of old) this.#deleted.delete(row.id);
    return old.length;
  }

  #find(id: string): SnapshotRecord | undefined {
    return this.#present.get(id) ?? this.#deleted.get(id);
  }

  #put(record: SnapshotRecord): void {
    (record.state === 'deleted' ? this.#deleted : this.#present).set(record.id, record);
  }
}

function isBehind(row: SnapshotRecord, cursor: { createdAt: number; key: string }): boolean {
  return row.createdAt === cursor.createdAt ? row.id < cursor.key : row.createdAt < cursor.createdAt;
}
