import type { HostLoad, HostLoads } from '../../core/hosts/host.ts';
import type { AttemptRecord } from '../../core/lifecycle/attempt.ts';
import type { SetupLog } from '../../core/lifecycle/setup-log.ts';
import type { AttemptStore } from '../../core/ports/store/attempt-store.ts';
import { conflict } from '../rejections.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

const newestFirst = (a: AttemptRecord, b: AttemptRecord) =>
  b.startedAt - a.startedAt || (a.attemptId < b.attemptId ? 1 : -1);

export class MemoryAttempts implements AttemptStore {
  readonly #journal: MemoryJournal;
  readonly #rows: MemoryTable<AttemptRecord>;
  readonly #idsBySandbox: MemoryTable<readonly string[]>;
  readonly #setups: MemoryTable<readonly SetupLog[]>;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#rows = new MemoryTable(journal);
    this.#idsBySandbox = new MemoryTable(journal);
    this.#setups = new MemoryTable(journal);
  }

  async get(attemptId: string): Promise<AttemptRecord | null> {
    return this.#rows.get(attemptId) ?? null;
  }

  async forSandbox(uid: string): Promise<readonly AttemptRecord[]> {
    const ids = this.#idsBySandbox.get(uid);
    if (ids === undefined) return [];
    return ids
      .map((id) => this.#rows.get(id) as AttemptRecord)
      .sort((a, b) => a.generation - b.generation || a.n - b.n);
  }

  async onHost(hostId: string, limit: number): Promise<readonly AttemptRecord[]> {
    return [...this.#rows.values()]
      .filter((row) => row.hostId === hostId && row.state !== 'gone')
      .sort(newestFirst)
      .slice(0, limit);
  }

  async recent(limit: number): Promise<readonly AttemptRecord[]> {
    const counts = new Map<string, number>();
    return [...this.#rows.values()].sort(newestFirst).filter(({ extensionId, hostId }) => {
      const place = JSON.stringify([extensionId, hostId]);
      const count = (counts.get(place) ?? 0) + 1;
      counts.set(place, count);
      return count <= limit;
    });
  }

  async hostLoads(hostIds?: readonly string[]): Promise<HostLoads> {
    const loads: Record<string, HostLoad> = {};
    for (const { hostId, state, reserved } of this.#rows.values()) {
      if (hostId === null || state === 'gone') continue;
      if (hostIds !== undefined && !hostIds.includes(hostId)) continue;
      const { sandboxes = 0, millicpu = 0, memoryMb = 0 } = loads[hostId] ?? {};
      loads[hostId] = {
        sandboxes: sandboxes + 1,
        millicpu: millicpu + reserved.millicpu,
        memoryMb: memoryMb + reserved.memoryMb,
      };
    }
    return loads;
  }

  async insert(record: AttemptRecord): Promise<void> {
    this.#journal.assertWritable();
    const { attemptId, sandboxUid } = record;
    if (this.#rows.has(attemptId)) throw conflict(`The attempt ${attemptId} exists.`);
    this.#rows.set(attemptId, record);
    this.#idsBySandbox.set(sandboxUid, [...(this.#idsBySandbox.get(sandboxUid) ?? []), attemptId]);
    this.#journal.touched(sandboxUid);
  }

  async update(record: AttemptRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#rows.get(record.attemptId)?.sandboxUid !== record.sandboxUid) {
      throw conflict(`The attempt ${record.attemptId} is gone.`);
    }
    this.#rows.set(record.attemptId, record);
    this.#journal.touched(record.sandboxUid);
  }

  /** Whether an attempt that is not gone uses the key. */
  useKey(providerKeyId: string): boolean {
    return [...this.#rows.values()].some(
      (row) => row.providerKeyId === providerKeyId && row.state !== 'gone',
    );
  }

  async putSetup(log: SetupLog): Promise<void> {
    this.#journal.assertWritable();
    const others = (await this.setups(log.sandboxUid)).filter(({ attemptId }) => attemptId !== log.attemptId);
    const all = [...others, log].sort((a, b) => a.generation - b.generation || a.n - b.n);
    this.#setups.set(log.sandboxUid, all);
  }

  async setups(sandboxUid: string): Promise<readonly SetupLog[]> {
    return this.#setups.get(sandboxUid) ?? [];
  }

  removeOf(sandboxUid: string): void {
    for (const id of this.#idsBySandbox.get(sandboxUid) ?? []) this.#rows.delete(id);
    this.#idsBySandbox.delete(sandboxUid);
    this.#setups.delete(sandboxUid);
  }
}
