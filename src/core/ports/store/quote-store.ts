import type { QuoteRecord } from '../../routing/quote.ts';

export interface QuoteStore {
  get(id: string): Promise<QuoteRecord | null>;
  insert(quote: QuoteRecord): Promise<void>;
  /** Removes those that expired before, oldest first; returns how many. */
  prune(before: number, limit: number): Promise<number>;
}
