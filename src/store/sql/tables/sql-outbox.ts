import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type {
  OutboxStore,
  ParkedCounts,
  ParkedDelivery,
  ParkedQuery,
  SinkCursor,
  SinkState,
} from '../../../core/ports/store/outbox-store.ts';
import { atMost } from '../session/at-most.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { CursorRow, ParkedRow, Schema } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function outboxStatements(db: Kysely<Schema>) {
  const parkedOf = (sinkId: string) =>
    db.selectFrom('outbox_parked').selectAll().where('sink_id', '=', sinkId);
  return {
    db,
    cursors: new RowWriter(db, 'outbox_cursors'),
    parkedRows: new RowWriter(db, 'outbox_parked'),
    cursor: prepare<{ sinkId: string }, Pick<CursorRow, 'cursor'>>(({ sinkId }) =>
      db.selectFrom('outbox_cursors').select('cursor').where('sink_id', '=', sinkId),
    ),
    minCursor: prepare<object, { min: number | null }>(() =>
      db
        .selectFrom('outbox_cursors')
        .select((row) => row.fn.min('cursor').as('min'))
        .where('active', '=', 1),
    ),
    sink: prepare<{ sinkId: string }, CursorRow>(({ sinkId }) =>
      db.selectFrom('outbox_cursors').selectAll().where('sink_id', '=', sinkId),
    ),
    sinks: prepare<object, CursorRow>(() => db.selectFrom('outbox_cursors').selectAll().orderBy('sink_id')),
    removeCursor: prepare<{ sinkId: string }, unknown>(({ sinkId }) =>
      db.deleteFrom('outbox_cursors').where('sink_id', '=', sinkId),
    ),
    removeParked: prepare<{ sinkId: string }, unknown>(({ sinkId }) =>
      db.deleteFrom('outbox_parked').where('sink_id', '=', sinkId),
    ),
    parked: prepare<{ sinkId: string }, ParkedRow>(({ sinkId }) => parkedOf(sinkId).orderBy('seq')),
    // Written out, not bound: that is how SQLite sees that the partial index covers it.
    waiting: prepare<{ sinkId: string }, ParkedRow>(({ sinkId }) =>
      parkedOf(sinkId).where('dead', '=', sql.lit(0)).orderBy('seq'),
    ),
    counts: prepare<{ sinkId: string; since: number }, CountRow>(({ sinkId, since }) =>
      db
        .selectFrom('outbox_parked')
        .select((row) => [
          row.fn.countAll<number>().as('all'),
          row.fn.sum<number | null>('dead').as('dead'),
          sql<number | null>`sum(case when dead = 1 and next_at > ${since} then 1 else 0 end)`.as(
            'dead_since',
          ),
        ])
        .where('sink_id', '=', sinkId),
    ),
    worst: prepare<{ sinkId: string }, Pick<ParkedRow, 'last_error'>>(({ sinkId }) =>
      db
        .selectFrom('outbox_parked')
        .select('last_error')
        .where('sink_id', '=', sinkId)
        .where('tries', '>', sql.lit(0))
        .orderBy('dead')
        .orderBy('tries', 'desc')
        .orderBy('seq')
        .limit(sql.lit(1)),
    ),
    oldDead: prepare<{ before: number; limit: number }, Pick<ParkedRow, 'sink_id' | 'seq'>>(
      ({ before, limit }) =>
        db
          .selectFrom('outbox_parked')
          .select(['sink_id', 'seq'])
          .where('dead', '=', sql.lit(1))
          .where('next_at', '<', before)
          .orderBy('next_at')
          .limit(atMost(limit)),
    ),
    unpark: prepare<{ sinkId: string; seq: number }, unknown>(({ sinkId, seq }) =>
      db.deleteFrom('outbox_parked').where('sink_id', '=', sinkId).where('seq', '=', seq),
    ),
  };
}

export interface CountRow {
  readonly all: number | string;
  readonly dead: number | string | null;
  readonly dead_since: number | string | null;
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

  async sink(sinkId: string): Promise<SinkState | null> {
    const row = await this.#session.first(this.#statements.sink, { sinkId });
    return row && sinkState(row);
  }

  async sinks(): Promise<readonly SinkState[]> {
    return (await this.#session.all(this.#statements.sinks, {})).map(sinkState);
  }

  async setActive(sinkId: string, active: boolean): Promise<void> {
    const { cursors } = this.#statements;
    await this.#session.change(cursors.update({ active: active ? 1 : 0 }, { sink_id: sinkId }));
  }

  async setTaken(sinkId: string, at: number): Promise<void> {
    await this.#session.change(this.#statements.cursors.update({ taken_at: at }, { sink_id: sinkId }));
  }

  async removeSink(sinkId: string): Promise<void> {
    await this.#session.run(this.#statements.removeCursor, { sinkId });
    await this.#session.run(this.#statements.removeParked, { sinkId });
  }

  async minCursor(): Promise<number | null> {
    return (await this.#session.first(this.#statements.minCursor, {}))?.min ?? null;
  }

  async parked(sinkId: string): Promise<readonly ParkedDelivery[]> {
    return (await this.#session.all(this.#statements.parked, { sinkId })).map(parkedDelivery);
  }

  async waiting(sinkId: string): Promise<readonly ParkedDelivery[]> {
    return (await this.#session.all(this.#statements.waiting, { sinkId })).map(parkedDelivery);
  }

  async parkedPage({ sinkId, dead, after, limit }: ParkedQuery): Promise<readonly ParkedDelivery[]> {
    let query = this.#statements.db
      .selectFrom('outbox_parked')
      .selectAll()
      .where('sink_id', '=', sinkId)
      .where('seq', '>', after);
    if (dead !== undefined) query = query.where('dead', '=', dead ? 1 : 0);
    return (await this.#session.query(query.orderBy('seq').limit(atMost(limit)).compile())).map(
      parkedDelivery,
    );
  }

  async parkedCounts(sinkId: string, since: number): Promise<ParkedCounts> {
    const counts = await this.#session.first(this.#statements.counts, { sinkId, since });
    const worst = await this.#session.first(this.#statements.worst, { sinkId });
    const dead = Number(counts?.dead ?? 0);
    return {
      waiting: Number(counts?.all ?? 0) - dead,
      dead,
      deadSince: Number(counts?.dead_since ?? 0),
      lastError: worst?.last_error ?? null,
    };
  }

  async pruneDead(before: number, limit: number): Promise<number> {
    this.#session.assertWritable();
    const old = await this.#session.all(this.#statements.oldDead, { before, limit });
    for (const { sink_id, seq } of old) await this.unpark(sink_id, seq);
    return old.length;
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

function sinkState(row: CursorRow): SinkState {
  return {
    sinkId: row.sink_id,
    cursor: row.cursor,
    active: row.active === 1,
    takenAt: row.taken_at ?? null,
  };
}

function parkedDelivery(row: ParkedRow): ParkedDelivery {
  return {
    sinkId: row.sink_id,
    seq: row.seq,
    subject: row.subject,
    tries: row.tries,
    nextAt: row.next_at,
    lastError: row.last_error,
    dead: row.dead === 1,
  };
}
