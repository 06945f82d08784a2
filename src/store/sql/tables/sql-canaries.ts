import type { Kysely } from 'kysely';
import type { CanaryRecord } from '../../../core/hosts/canary.ts';
import type { CanaryStore } from '../../../core/ports/store/canary-store.ts';
import { conflict } from '../../rejections.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { CanaryRow, Schema } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function canaryStatements(db: Kysely<Schema>) {
  const all = db.selectFrom('canaries').selectAll();
  return {
    rows: new RowWriter(db, 'canaries'),
    get: prepare<{ attemptId: string }, CanaryRow>(({ attemptId }) =>
      all.where('attempt_id', '=', attemptId),
    ),
    all: prepare<object, CanaryRow>(() => all.orderBy('attempt_id')),
    remove: prepare<{ attemptId: string }>(({ attemptId }) =>
      db.deleteFrom('canaries').where('attempt_id', '=', attemptId),
    ),
  };
}

export class SqlCanaries implements CanaryStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof canaryStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof canaryStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async get(attemptId: string): Promise<CanaryRecord | null> {
    const row = await this.#session.first(this.#statements.get, { attemptId });
    return row && canaryRecord(row);
  }

  async list(): Promise<readonly CanaryRecord[]> {
    return (await this.#session.all(this.#statements.all, {})).map(canaryRecord);
  }

  async insert({ attemptId, sandboxUid, hostId, extensionId, startedAt }: CanaryRecord): Promise<void> {
    const row: CanaryRow = {
      attempt_id: attemptId,
      sandbox_uid: sandboxUid,
      host_id: hostId,
      extension_id: extensionId,
      started_at: startedAt,
    };
    const inserted = await this.#session.change(this.#statements.rows.insert(row));
    if (inserted === 0) throw conflict(`The canary ${attemptId} exists.`);
  }

  async remove(attemptId: string): Promise<void> {
    await this.#session.run(this.#statements.remove, { attemptId });
  }
}

function canaryRecord(row: CanaryRow): CanaryRecord {
  return {
    attemptId: row.attempt_id,
    sandboxUid: row.sandbox_uid,
    hostId: row.host_id,
    extensionId: row.extension_id,
    startedAt: row.started_at,
  };
}
