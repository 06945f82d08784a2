import type { HostRecord, HostSample } from '../../core/hosts/host.ts';
import type { HostStore } from '../../core/ports/store/host-store.ts';
import { conflict } from '../rejections.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

const keyOf = ({ hostId, kind, at }: HostSample) => `${hostId}|${kind}|${at}`;

export class MemoryHosts implements HostStore {
  readonly #journal: MemoryJournal;
  readonly #rows: MemoryTable<HostRecord>;
  readonly #samples: MemoryTable<HostSample>;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#rows = new MemoryTable(journal);
    this.#samples = new MemoryTable(journal);
  }

  async get(id: string): Promise<HostRecord | null> {
    return this.#rows.get(id) ?? null;
  }

  async list(): Promise<readonly HostRecord[]> {
    return [...this.#rows.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async insert(record: HostRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#rows.has(record.id)) throw conflict(`The host ${record.id} exists.`);
    this.#rows.set(record.id, record);
  }

  async update(record: HostRecord): Promise<HostRecord> {
    this.#journal.assertWritable();
    if (this.#rows.get(record.id)?.version !== record.version)
      throw conflict(`The host ${record.id} was changed.`);
    const next = { ...record, version: record.version + 1 };
    this.#rows.set(record.id, next);
    return next;
  }

  async remove(id: string): Promise<void> {
    this.#journal.assertWritable();
    this.#rows.delete(id);
  }

  async addSample(sample: HostSample): Promise<void> {
    this.#journal.assertWritable();
    this.#samples.set(keyOf(sample), sample);
  }

  async samples(hostId: string, kind: HostSample['kind'], limit: number): Promise<readonly HostSample[]> {
    return [...this.#samples.values()]
      .filter((sample) => sample.hostId === hostId && sample.kind === kind)
      .sort((a, b) => b.at - a.at)
      .slice(0, limit);
  }

  async pruneSamples(before: number, limit: number): Promise<number> {
    this.#journal.assertWritable();
    const old = [...this.#samples.values()]
      .filter(({ at }) => at < before)
      .sort((a, b) => a.at - b.at)
      .slice(0, limit);
    for (const sample of old) this.#samples.delete(keyOf(sample));
    return old.length;
  }
}
