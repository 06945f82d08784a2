import type { MeterRecord } from '../../core/credits/meter.ts';
import type { MeterStore } from '../../core/ports/store/meter-store.ts';
import { conflict } from '../rejections.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemoryMeters implements MeterStore {
  readonly #journal: MemoryJournal;
  readonly #rows: MemoryTable<MeterRecord>;
  /** Open with a rate above zero. */
  readonly #running: MemoryTable<MeterRecord>;
  /** Open with a time to fund it at. */
  readonly #toFund: MemoryTable<MeterRecord>;
  readonly #idsBySandbox: MemoryTable<readonly string[]>;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#rows = new MemoryTable(journal);
    this.#running = new MemoryTable(journal);
    this.#toFund = new MemoryTable(journal);
    this.#idsBySandbox = new MemoryTable(journal);
  }

  async get(id: string): Promise<MeterRecord | null> {
    return this.#rows.get(id) ?? null;
  }

  async insert(record: MeterRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#rows.has(record.id)) throw conflict(`The meter ${record.id} exists.`);
    const { sandboxUid } = record;
    this.#idsBySandbox.set(sandboxUid, [...(this.#idsBySandbox.get(sandboxUid) ?? []), record.id]);
    this.#put(record);
  }

  async update(record: MeterRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#rows.get(record.id)?.sandboxUid !== record.sandboxUid) {
      throw conflict(`The meter ${record.id} is gone.`);
    }
    this.#put(record);
  }

  async forSandbox(uid: string): Promise<readonly MeterRecord[]> {
    return (this.#idsBySandbox.get(uid) ?? [])
      .map((id) => this.#rows.get(id) as MeterRecord)
      .sort((a, b) => a.generation - b.generation || a.openedAt - b.openedAt || (a.id < b.id ? -1 : 1));
  }

  async openSince(before: number, limit: number): Promise<readonly MeterRecord[]> {
    return [...this.#running.values()]
      .filter((meter) => meter.since < before)
      .sort((a, b) => a.since - b.since || (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  async dueFunding(now: number, limit: number): Promise<readonly MeterRecord[]> {
    return [...this.#toFund.values()]
      .filter(({ fundAt }) => (fundAt as number) <= now)
      .sort((a, b) => (a.fundAt as number) - (b.fundAt as number) || (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  async nextFundingAt(): Promise<number | null> {
    let next: number | null = null;
    for (const { fundAt } of this.#toFund.values()) next = Math.min(next ?? Infinity, fundAt as number);
    return next;
  }

  async open(afterId: string | null, limit: number): Promise<readonly MeterRecord[]> {
    return [...this.#rows.values()]
      .filter(({ id, closedAt }) => closedAt === null && id > (afterId ?? ''))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  #put(record: MeterRecord): void {
    this.#rows.set(record.id, record);
    this.#journal.funds(record.closedAt === null ? record.fundAt : null);
    if (record.closedAt === null && record.rate > 0n) this.#running.set(record.id, record);
    else this.#running.delete(record.id);
    if (record.closedAt === null && record.fundAt !== null) this.#toFund.set(record.id, record);
    else this.#toFund.delete(record.id);
  }
}
