import type { Query } from './path-of.ts';
import { queryOf } from './path-of.ts';
import type { CallOptions, Transport } from './transport.ts';

export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
}

/** List that fetches its pages as they are needed: iterate over it, or take it page by page. */
export class PagedList<T> implements AsyncIterable<T> {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #query: Query;
  readonly #options: CallOptions;

  constructor(transport: Transport, path: string, query: Query, options: CallOptions) {
    this.#transport = transport;
    this.#path = path;
    this.#query = query;
    this.#options = options;
  }

  /** Returns one page; the first, or the one that a cursor leads to. */
  page(cursor?: string): Promise<Page<T>> {
    const path = this.#path + queryOf(cursor === undefined ? this.#query : { ...this.#query, cursor });
    return this.#transport.json({ ...this.#options, method: 'GET', path });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    let cursor: string | undefined;
    do {
      const page = await this.page(cursor);
      yield* page.items;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** Returns at most `limit` items, all of them when left out. */
  async all(limit = Number.POSITIVE_INFINITY): Promise<T[]> {
    const items: T[] = [];
    if (limit <= 0) return items;
    for await (const item of this) {
      items.push(item);
      if (items.length >= limit) break;
    }
    return items;
  }
}
