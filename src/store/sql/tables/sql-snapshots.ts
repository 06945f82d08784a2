import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { SnapshotRecord } from '../../../core/assets/snapshot.ts';
import type { Page } from '../../../core/ports/store/page.ts';
import type { SnapshotQuery, SnapshotStore } from '../../../core/ports/store/snapshot-store.ts';
import { decodeCursor, encodeCursor } from '../../page-cursor.ts';
import { conflict } from '../../rejections.ts';
import { atMost } from '../session/at-most.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { Schema, SnapshotRow } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';
import { snapshotRecord, snapshotRow } from './snapshot-row.ts';

export function snapshotStatements(db: Kysely<Schema>) {
  return {
    db,
    rows: new RowWriter(db, 'snapshots'),
    get: prepare<{ id: string }, SnapshotRow>(({ id }) =>
      db.selectFrom('snapshots').selectAll().where('id', '=', id),
    ),
    deleting: prepare<{ limit: number }, SnapshotRow>(({ limit }) =>
      db
        .selectFrom('snapshots')
        .selectAll()
        .where('state', '=', 'deleting')
        .orderBy('created_at')
        .orderBy('id')
        .limit(atMost(limit)),
    ),
    expired: prepare<{ now: number }, SnapshotRow>(({ now }) =>
      db
        .selectFrom('snapshots')
        .selectAll()
        .where('expires_at', '<=', now)
        .where('state', 'not in', ['deleting', 'deleted']),
    ),
    usage: prepare<{ workspaceId: string }, { count: number; bytes: number | null }>(({ workspaceId }) =>
      db
        .selectFrom('snapshots')
        .select((from) => [
          from.fn.countAll<number>().as('count'),
          from.fn.sum<number>('size_bytes').as('bytes'),
        ])
        .where('workspace_id', '=', workspaceId)
        .where('state', '<>', 'deleted'),
    ),
    prune: prepare<{ before: number; limit: number }, unknown>(({ before, limit }) =>
      db
        .deleteFrom('snapshots')
        .where('id', 'in', (from) =>
          from
            .selectFrom('snapshots')
            .select('id')
            .where('deleted_at', '<', before)
            .orderBy('deleted_at')
            .orderBy('id')
            .limit(atMost(limit)),
        ),
    ),
  };
}

export class SqlSnapshots implements SnapshotStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof snapshotStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof snapshotStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async get(id: string): Promise<SnapshotRecord | null> {
    const row = await this.#session.first(this.#statements.get, { id });
    return row && snapshotRecord(row);
  }

  async insert(record: SnapshotRecord): Promise<void> {
    const inserted = await this.#session.change(this.#statements.rows.insert(snapshotRow(record)));
    if (inserted === 0) throw conflict(`The snapshot ${record.id} exists.`);
  }

  async update(record: SnapshotRecord): Promise<SnapshotRecord> {
    const next = { ...record, version: record.version + 1 };
    const { id, ...rest } = snapshotRow(next);
    const updated = await this.#session.change(
      this.#statements.rows.update(rest, { id, version: record.version }),
    );
    if (updated === 0) throw conflict(`The snapshot ${id} was changed.`);
    return next;
  }

  async list({ workspaceId, sandboxUid, cursor, limit }: SnapshotQuery): Promise<Page<SnapshotRecord>> {
    const from = decodeCursor(cursor);
    let query = this.#statements.db.selectFrom('snapshots').selectAll().where('state', '<>', 'deleted');
    if (workspaceId !== null) query = query.where('workspace_id', '=', workspaceId);
    if (sandboxUid !== undefined) query = query.where('sandbox_uid', '=', sandboxUid);
    if (from !== null) query = query.where(sql<boolean>`(created_at, id) < (${from.createdAt}, ${from.key})`);
    const rows = await this.#session.query(
      query
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(atMost(limit + 1))
        .compile(),
    );
    const items = rows.slice(0, limit).map(snapshotRecord);
    const last = items.at(-1);
    const more = rows.length > limit && last !== undefined;
    return { items, nextCursor: more ? encodeCursor({ createdAt: last.createdAt, key: last.id }) : null };
  }

  async dueDeletion(now: number, limit: number): Promise<readonly SnapshotRecord[]> {
    const deleting = await this.#session.all(this.#statements.deleting, { limit });
    const expired = await this.#session.all(this.#statements.expired, { now });
    return [...deleting, ...expired]
      .map(snapshotRecord)
      .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  async usage(workspaceId: string): Promise<{ count: number; bytes: number }> {
    const row = await this.#session.first(this.#statements.usage, { workspaceId });
    return { count: Number(row?.count ?? 0), bytes: Number(row?.bytes ?? 0) };
  }

  async prune(before: number, limit: number): Promise<number> {
    return await this.#session.run(this.#statements.prune, { before, limit });
  }
}
