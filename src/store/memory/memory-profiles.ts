import type { ProfileStore, PushedProfile } from '../../core/ports/store/profile-store.ts';
import { conflict } from '../rejections.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemoryProfiles implements ProfileStore {
  readonly #journal: MemoryJournal;
  readonly #rows: MemoryTable<PushedProfile>;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#rows = new MemoryTable(journal);
  }

  async get(workspaceId: string, id: string, version: string): Promise<PushedProfile | null> {
    return this.#rows.get(keyOf(workspaceId, id, version)) ?? null;
  }

  async insert(pushed: PushedProfile): Promise<void> {
    this.#journal.assertWritable();
    const { id, version } = pushed.profile;
    const key = keyOf(pushed.workspaceId, id, version);
    if (this.#rows.has(key)) throw conflict(`The profile ${id}@${version} exists.`);
    this.#rows.set(key, pushed);
  }

  async list(workspaceId: string | null): Promise<readonly PushedProfile[]> {
    return [...this.#rows.values()]
      .filter((row) => workspaceId === null || row.workspaceId === workspaceId)
      .map((row) => ({ row, key: keyOf(row.workspaceId, row.profile.id, row.profile.version) }))
      .sort((a, b) => (a.key < b.key ? -1 : 1))
      .map(({ row }) => row);
  }
}

/** Sorts like the three columns one after the other: no id contains a character below the separator. */
function keyOf(workspaceId: string, id: string, version: string): string {
  return `${workspaceId}\n${id}\n${version}`;
}
