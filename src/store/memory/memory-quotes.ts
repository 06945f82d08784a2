import type { QuoteStore } from '../../core/ports/store/quote-store.ts';
import type { QuoteRecord } from '../../core/routing/quote.ts';
import { conflict } from '../rejections.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemoryQuotes implements QuoteStore {
  readonly #journal: MemoryJournal;
  readonly #rows: MemoryTable<QuoteRecord>;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#rows = new MemoryTable(journal);
  }

  async get(id: string): Promise<QuoteRecord | null> {
    return this.#rows.get(id) ?? null;
  }

  async insert(quote: QuoteRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#rows.has(quote.id)) throw conflict(`The quote ${quote.id} exists.`);
    this.#rows.set(quote.id, quote);
  }

  async prune(before: number, limit: number): Promise<number> {
    this.#journal.assertWritable();
    const expired = [...this.#rows.values()]
      .filter(({ expiresAt }) => expiresAt < before)
      .sort((a, b) => a.expiresAt - b.expiresAt)
      .slice(0, limit);
    for (const { id } of expired) this.#rows.delete(id);
    return expired.length;
  }
}
