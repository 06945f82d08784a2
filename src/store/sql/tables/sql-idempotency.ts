import type { Kysely } from 'kysely';
import type { IdempotencyRecord, IdempotencyStore } from '../../../core/ports/store/idempotency-store.ts';
import { conflict } from '../../rejections.ts';
import { atMost } from '../session/at-most.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { IdempotencyRow, Schema } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function idempotencyStatements(db: Kysely<Schema>) {
  return {
    rows: new RowWriter(db, 'idempotency_keys'),
    get: prepare<{ workspaceId: string; key: string }, IdempotencyRow>(({ workspaceId, key }) =>
      db
        .selectFrom('idempotency_keys')
        .selectAll()
        .where('workspace_id', '=', workspaceId)
        .where('key', '=', key),
    ),
    old: prepare<{ before: number; limit: number }, Pick<IdempotencyRow, 'workspace_id' | 'key'>>(
      ({ before, limit }) =>
        db
          .selectFrom('idempotency_keys')
          .select(['workspace_id', 'key'])
          .where('created_at', '<', before)
          .orderBy('created_at')
          .limit(atMost(limit)),
    ),
    remove: prepare<{ workspace_id: string; key: string }, unknown>(({ workspace_id, key }) =>
      db.deleteFrom('idempotency_keys').where('workspace_id', '=', workspace_id).where('key', '=', key),
    ),
  };
}

export class SqlIdempotency implements IdempotencyStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof idempotencyStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof idempotencyStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async get(workspaceId: string, key: string): Promise<IdempotencyRecord | null> {
    const row = await this.#session.first(this.#statements.get, { workspaceId, key });
    if (row === null) return null;
    return {
      workspaceId: row.workspace_id,
      key: row.key,
      requestDigest: row.request_digest,
      result: row.result,
      createdAt: row.created_at,
    };
  }

  async insert(record: IdempotencyRecord): Promise<void> {
    const row = {
      workspace_id: record.workspaceId,
      key: record.key,
      request_digest: record.requestDigest,
      result: record.result,
      created_at: record.createdAt,
    };
    const inserted = await this.#session.change(this.#statements.rows.insert(row));
    if (inserted === 0) throw conflict('The idempotency key is in use.');
  }

  async prune(before: number, limit: number): Promise<number> {
    this.#session.assertWritable();
    const old = await this.#session.all(this.#statements.old, { before, limit });
    for (const key of old) await this.#session.run(this.#statements.remove, key);
    return old.length;
  }
}
