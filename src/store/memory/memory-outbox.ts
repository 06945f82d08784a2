import type {
  OutboxStore,
  ParkedCounts,
  ParkedDelivery,
  ParkedQuery,
  SinkCursor,
  SinkState,
} from '../../core/ports/store/outbox-store.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemoryOutbox implements OutboxStore {
  readonly #journal: MemoryJournal;
  readonly #cursors: MemoryTable<SinkState>;
  readonly #parked: MemoryTable<ParkedDelivery>;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#cursors = new MemoryTable(journal);
    this.#parked = new MemoryTable(journal);
  }

  async cursor(sinkId: string): Promise<number | null> {
    return this.#cursors.get(sinkId)?.cursor ?? null;
  }

  async setCursor(cursor: SinkCursor): Promise<void> {
    this.#journal.assertWritable();
    const known = this.#cursors.get(cursor.sinkId) ?? { active: true, takenAt: null };
    this.#cursors.set(cursor.sinkId, { ...known, ...cursor });
  }

  async sink(sinkId: string): Promise<SinkState | null> {
    return this.#cursors.get(sinkId) ?? null;
  }

  async sinks(): Promise<readonly SinkState[]> {
    return [...this.#cursors.values()].sort((a, b) => (a.sinkId < b.sinkId ? -1 : 1));
  }

  async setActive(sinkId: string, active: boolean): Promise<void> {
    this.#change(sinkId, { active });
  }

  async setTaken(sinkId: string, at: number): Promise<void> {
    this.#change(sinkId, { takenAt: at });
  }

  async removeSink(sinkId: string): Promise<void> {
    this.#journal.assertWritable();
    this.#cursors.delete(sinkId);
    for (const delivery of this.#of(sinkId)) this.#parked.delete(keyOf(sinkId, delivery.seq));
  }

  async minCursor(): Promise<number | null> {
    let min: number | null = null;
    for (const { cursor, active } of this.#cursors.values()) {
      if (active) min = min === null ? cursor : Math.min(min, cursor);
    }
    return min;
  }

  async parked(sinkId: string): Promise<readonly ParkedDelivery[]> {
    return this.#of(sinkId).sort((a, b) => a.seq - b.seq);
  }

  async waiting(sinkId: string): Promise<readonly ParkedDelivery[]> {
    return (await this.parked(sinkId)).filter(({ dead }) => !dead);
  }

  async parkedPage({ sinkId, dead, after, limit }: ParkedQuery): Promise<readonly ParkedDelivery[]> {
    const wanted = (row: ParkedDelivery) => row.seq > after && (dead === undefined || row.dead === dead);
    return (await this.parked(sinkId)).filter(wanted).slice(0, limit);
  }

  async parkedCounts(sinkId: string, since: number): Promise<ParkedCounts> {
    const all = await this.parked(sinkId);
    const dead = all.filter((row) => row.dead);
    const [worst] = all
      .filter(({ tries }) => tries > 0)
      .sort((a, b) => Number(a.dead) - Number(b.dead) || b.tries - a.tries || a.seq - b.seq);
    return {
      waiting: all.length - dead.length,
      dead: dead.length,
      deadSince: dead.filter(({ nextAt }) => nextAt > since).length,
      lastError: worst?.lastError ?? null,
    };
  }

  async pruneDead(before: number, limit: number): Promise<number> {
    this.#journal.assertWritable();
    const old = [...this.#parked.values()]
      .filter(({ dead, nextAt }) => dead && nextAt < before)
      .sort((a, b) => a.nextAt - b.nextAt)
      .slice(0, limit);
    for (const { sinkId, seq } of old) this.#parked.delete(keyOf(sinkId, seq));
    return old.length;
  }

  async park(delivery: ParkedDelivery): Promise<void> {
    this.#journal.assertWritable();
    this.#parked.set(keyOf(delivery.sinkId, delivery.seq), delivery);
  }

  async unpark(sinkId: string, seq: number): Promise<void> {
    this.#journal.assertWritable();
    this.#parked.delete(keyOf(sinkId, seq));
  }

  parkedSeqs(): ReadonlySet<number> {
    return new Set([...this.#parked.values()].map(({ seq }) => seq));
  }

  #change(sinkId: string, change: Partial<SinkState>): void {
    this.#journal.assertWritable();
    const known = this.#cursors.get(sinkId);
    if (known) this.#cursors.set(sinkId, { ...known, ...change });
  }

  #of(sinkId: string): ParkedDelivery[] {
    return [...this.#parked.values()].filter((delivery) => delivery.sinkId === sinkId);
  }
}

function keyOf(sinkId: string, seq: number): string {
  return `${seq}~${sinkId}`;
}
