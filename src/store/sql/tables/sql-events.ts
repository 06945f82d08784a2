import type { Kysely } from 'kysely';
import type { EventDraft, EventRecord } from '../../../core/events/event.ts';
import type { EventQuery, EventStore } from '../../../core/ports/store/event-store.ts';
import { atMost } from '../session/at-most.ts';
import { readDocument, writeDocument } from '../session/document.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { EventRow, Schema } from '../session/schema.ts';
import { Sequence } from '../session/sequence.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function eventStatements(db: Kysely<Schema>) {
  return {
    db,
    rows: new RowWriter(db, 'events'),
    sequence: new Sequence(db, 'events'),
    prune: prepare<{ before: number; seq: number; limit: number }, unknown>(({ before, seq, limit }) =>
      db.deleteFrom('events').where('seq', 'in', (from) =>
        from
          .selectFrom('events')
          .select('seq')
          .where('at', '<', before)
          .where('seq', '<=', seq)
          .where(({ not, exists, selectFrom }) =>
            not(
              exists(
                selectFrom('outbox_parked')
                  .select('outbox_parked.seq')
                  .whereRef('outbox_parked.seq', '=', 'events.seq'),
              ),
            ),
          )
          .orderBy('at')
          .orderBy('seq')
          .limit(atMost(limit)),
      ),
    ),
  };
}

export class SqlEvents implements EventStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof eventStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof eventStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async append(drafts: readonly EventDraft[]): Promise<readonly EventRecord[]> {
    this.#session.assertWritable();
    if (drafts.length === 0) return [];
    const firstSeq = await this.#statements.sequence.take(this.#session, drafts.length);
    const records = drafts.map((draft, i) => ({ ...draft, seq: firstSeq + i }));
    for (const record of records) {
      await this.#session.change(this.#statements.rows.insert(eventRow(record)));
      if (record.sandboxUid !== null) this.#session.sandboxUids.add(record.sandboxUid);
      this.#session.lastSeq = record.seq;
    }
    return records;
  }

  async list(wanted: EventQuery): Promise<readonly EventRecord[]> {
    const { workspaceId, sandboxUid, types, after, before, limit } = wanted;
    if (types?.length === 0) return [];
    let query = this.#statements.db.selectFrom('events').selectAll().where('seq', '>', after);
    if (workspaceId !== null) query = query.where('workspace_id', '=', workspaceId);
    if (sandboxUid !== undefined) query = query.where('sandbox_uid', '=', sandboxUid);
    if (types !== undefined) query = query.where('type', 'in', types);
    if (before !== undefined) query = query.where('seq', '<', before);
    const ordered = query.orderBy('seq', before === undefined ? 'asc' : 'desc');
    const rows = await this.#session.query(ordered.limit(atMost(limit)).compile());
    return rows.map(eventRecord);
  }

  async lastSeq(): Promise<number> {
    return await this.#statements.sequence.last(this.#session);
  }

  async prune(before: number, seq: number, limit: number): Promise<number> {
    return await this.#session.run(this.#statements.prune, { before, seq, limit });
  }
}

function eventRow(record: EventRecord): EventRow {
  return {
    seq: record.seq,
    id: record.id,
    at: record.at,
    type: record.type,
    workspace_id: record.workspaceId,
    subject: record.subject,
    subject_seq: record.subjectSeq,
    sandbox_uid: record.sandboxUid,
    sandbox_id: record.sandboxId,
    generation: record.generation,
    state: record.state,
    previous_state: record.previousState,
    actor: record.actor,
    consumer: writeDocument(record.consumer),
    details: writeDocument(record.details),
  };
}

function eventRecord(row: EventRow): EventRecord {
  return {
    seq: row.seq,
    id: row.id,
    at: row.at,
    type: row.type as EventRecord['type'],
    workspaceId: row.workspace_id,
    subject: row.subject,
    subjectSeq: row.subject_seq,
    sandboxUid: row.sandbox_uid,
    sandboxId: row.sandbox_id,
    generation: row.generation,
    state: row.state as EventRecord['state'],
    previousState: row.previous_state as EventRecord['previousState'],
    actor: row.actor as EventRecord['actor'],
    consumer: readDocument(row.consumer),
    details: readDocument(row.details),
  };
}
