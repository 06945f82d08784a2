import type { Kysely } from 'kysely';
import type { OutboxStore, ParkedDelivery, SinkCursor } from '../../core/store.ts';
import { RowWriter } from './row-writer.ts';
import type { CursorRow, ParkedRow, Schema } from './schema.ts';
import type { SqlSession } from './sql-session.ts';
import { prepare } from './statement.ts';

export function outboxStatements(db: Kysely<Schema>) {
  return {
    cursors: new RowWriter(db, 'outbox_cursors'),
    parkedRows: new RowWriter(db, 'outbox_parked'),
    cursor: prepare<{ sinkId: string }, Pick<CursorRow, 'cursor'>>(({ sinkId }) =>
      db.selectFrom('outbox_cursors').select('cursor').where('sink_id', '=', sinkId),
    ),
    minCursor: prepare<object, { min: number | null }>(() =>
      db.selectFrom('outbox_cursors').select((row) => row.fn.min('cursor').as('min')),
    ),
    removeCursor: prepare<{ sinkId: string }, unknown>(({ sinkId }) =>
      db.deleteFrom('outbox_cursors').where('sink_id', '=', sinkId),
    ),
    removeParked: prepare<{ sinkId: string }, unknown>(({ sinkId }) =>
      db.deleteFrom('outbox_parked').where('sink_id', '=', sinkId),
    ),
    parked: prepare<{ sinkId: string }, ParkedRow>(({ sinkId }) =>
      db.selectFrom('outbox_parked').selectAll().where('sink_id', '=', sinkId).orderBy('seq'),
    ),
    unpark: prepare<{ sinkId: string; seq: number }, unknown>(({ sinkId, seq }) =>
      db.deleteFrom('outbox_parked').where('sink_id', '=', sinkId).where('seq', '=', seq),
    ),
  };
}

export class SqlOutbox implements OutboxStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof outboxStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof outboxStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async cursor(sinkId: string): Promise<number | null> {
    return (await this.#session.first(this.#statements.cursor, { sinkId }))?.cursor ?? null;
  }

  async setCursor({ sinkId, cursor }: SinkCursor): Promise<void> {
    const row = { sink_id: sinkId, cursor };
    await this.#session.change(this.#statements.cursors.upsert(row, ['sink_id']));
  }

  async removeSink(sinkId: string): Promise<void> {
    await this.#session.run(this.#statements.removeCursor, { sinkId });
    await this.#session.run(this.#statements.removeParked, { sinkId });
  }

  async minCursor(): Promise<number | null> {
    return (await this.#session.first(this.#statements.minCursor, {}))?.min ?? null;
  }

  async parked(sinkId: string): Promise<readonly ParkedDelivery[]> {
    const rows = await this.#session.all(this.#statements.parked, { sinkId });
    return rows.map((row) => ({
      sinkId: row.sink_id,
      seq: row.seq,
      subject: row.subject,
      tries: row.tries,
      nextAt: row.next_at,
      lastError: row.last_error,
      dead: row.dead === 1,
    }));
  }

  async park(delivery: ParkedDelivery): Promise<void> {
    const row = {
      sink_id: delivery.sinkId,
      seq: delivery.seq,
      subject: delivery.subject,
      tries: delivery.tries,
      next_at: delivery.nextAt,
      last_error: delivery.lastError,
      dead: delivery.dead ? 1 : 0,
    };
    await this.#session.change(this.#statements.parkedRows.upsert(row, ['sink_id', 'seq']));
  }

  async unpark(sinkId: string, seq: number): Promise<void> {
    await this.#session.run(this.#statements.unpark, { sinkId, seq });
  }
}
