import type { OutboxStore, ParkedDelivery, SinkCursor } from '../../core/store.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemoryOutbox implements OutboxStore {
  readonly #journal: MemoryJournal;
  readonly #cursors: MemoryTable<SinkCursor>;
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
    this.#cursors.set(cursor.sinkId, cursor);
  }

  async removeSink(sinkId: string): Promise<void> {
    this.#journal.assertWritable();
    this.#cursors.delete(sinkId);
    for (const delivery of this.#of(sinkId)) this.#parked.delete(keyOf(sinkId, delivery.seq));
  }

  async minCursor(): Promise<number | null> {
    let min: number | null = null;
    for (const { cursor } of this.#cursors.values()) min = min === null ? cursor : Math.min(min, cursor);
    return min;
  }

  async parked(sinkId: string): Promise<readonly ParkedDelivery[]> {
    return this.#of(sinkId).sort((a, b) => a.seq - b.seq);
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

  #of(sinkId: string): ParkedDelivery[] {
    return [...this.#parked.values()].filter((delivery) => delivery.sinkId === sinkId);
  }
}

function keyOf(sinkId: string, seq: number): string {
  return `${seq}~${sinkId}`;
}
