import type { Kysely } from 'kysely';
import type { QuoteStore } from '../../../core/ports/store/quote-store.ts';
import type { QuoteRecord } from '../../../core/routing/quote.ts';
import { conflict } from '../../rejections.ts';
import { atMost } from '../session/at-most.ts';
import { readDocument, writeDocument } from '../session/document.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { QuoteRow, Schema } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function quoteStatements(db: Kysely<Schema>) {
  return {
    rows: new RowWriter(db, 'quotes'),
    get: prepare<{ id: string }, QuoteRow>(({ id }) =>
      db.selectFrom('quotes').selectAll().where('id', '=', id),
    ),
    expired: prepare<{ before: number; limit: number }, Pick<QuoteRow, 'id'>>(({ before, limit }) =>
      db
        .selectFrom('quotes')
        .select('id')
        .where('expires_at', '<', before)
        .orderBy('expires_at')
        .limit(atMost(limit)),
    ),
    remove: prepare<{ id: string }>(({ id }) => db.deleteFrom('quotes').where('id', '=', id)),
  };
}

export class SqlQuotes implements QuoteStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof quoteStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof quoteStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async get(id: string): Promise<QuoteRecord | null> {
    const row = await this.#session.first(this.#statements.get, { id });
    return row && readDocument<QuoteRecord>(row.document);
  }

  async insert(quote: QuoteRecord): Promise<void> {
    const row: QuoteRow = {
      id: quote.id,
      workspace_id: quote.workspaceId,
      created_at: quote.createdAt,
      expires_at: quote.expiresAt,
      document: writeDocument(quote),
    };
    const inserted = await this.#session.change(this.#statements.rows.insert(row));
    if (inserted === 0) throw conflict(`The quote ${quote.id} exists.`);
  }

  async prune(before: number, limit: number): Promise<number> {
    this.#session.assertWritable();
    const expired = await this.#session.all(this.#statements.expired, { before, limit });
    for (const { id } of expired) await this.#session.run(this.#statements.remove, { id });
    return expired.length;
  }
}
