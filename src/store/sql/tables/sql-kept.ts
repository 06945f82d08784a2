import type { Kysely } from 'kysely';
import type { KeptResource } from '../../../core/assets/kept-resource.ts';
import type { KeptStore } from '../../../core/ports/store/kept-store.ts';
import { conflict } from '../../rejections.ts';
import { atMost } from '../session/at-most.ts';
import { readDocument, writeDocument } from '../session/document.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { KeptRow, Schema } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

type KeptTable = 'images' | 'volumes';

/** Two tables of one form: what is known of the one holds for the other. */
export function keptStatements(db: Kysely<Schema>, table: KeptTable) {
  const from = () => db.selectFrom(table as 'images').selectAll();
  return {
    rows: new RowWriter(db, table),
    get: prepare<{ id: string }, KeptRow>(({ id }) => from().where('id', '=', id)),
    all: prepare<object, KeptRow>(() => from().orderBy('created_at').orderBy('id')),
    ofWorkspace: prepare<{ workspaceId: string }, KeptRow>(({ workspaceId }) =>
      from().where('workspace_id', '=', workspaceId).orderBy('created_at').orderBy('id'),
    ),
    shared: prepare<object, KeptRow>(() =>
      from().where('shared', '=', 1).orderBy('created_at').orderBy('id'),
    ),
    deleting: prepare<{ limit: number }, KeptRow>(({ limit }) =>
      from().where('state', '=', 'deleting').orderBy('created_at').orderBy('id').limit(atMost(limit)),
    ),
    expired: prepare<{ now: number; limit: number }, KeptRow>(({ now, limit }) =>
      from().where('expires_at', '<=', now).orderBy('expires_at').limit(atMost(limit)),
    ),
    remove: prepare<{ id: string }, unknown>(({ id }) =>
      db.deleteFrom(table as 'images').where('id', '=', id),
    ),
  };
}

export class SqlKept<R extends KeptResource> implements KeptStore<R> {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof keptStatements>;
  readonly #noun: string;

  constructor(session: SqlSession, statements: ReturnType<typeof keptStatements>, noun: string) {
    this.#session = session;
    this.#statements = statements;
    this.#noun = noun;
  }

  async get(id: string): Promise<R | null> {
    const row = await this.#session.first(this.#statements.get, { id });
    return row && recordOf<R>(row);
  }

  async insert(record: R): Promise<void> {
    const inserted = await this.#session.change(this.#statements.rows.insert(rowOf(record)));
    if (inserted === 0) throw conflict(`The ${this.#noun} ${record.id} exists.`);
  }

  async update(record: R): Promise<R> {
    const next = { ...record, version: record.version + 1 };
    const { id, ...rest } = rowOf(next);
    const updated = await this.#session.change(
      this.#statements.rows.update(rest, { id, version: record.version }),
    );
    if (updated === 0) throw conflict(`The ${this.#noun} ${id} was changed.`);
    return next;
  }

  async remove(id: string): Promise<void> {
    await this.#session.run(this.#statements.remove, { id });
  }

  async list(workspaceId: string | null): Promise<readonly R[]> {
    if (workspaceId === null)
      return inOrder<R>(await this.#session.all(this.#statements.all, {}), Number.POSITIVE_INFINITY);
    const own = await this.#session.all(this.#statements.ofWorkspace, { workspaceId });
    const shared = await this.#session.all(this.#statements.shared, {});
    return inOrder<R>([...own, ...shared], Number.POSITIVE_INFINITY);
  }

  async due(now: number, limit: number): Promise<readonly R[]> {
    const deleting = await this.#session.all(this.#statements.deleting, { limit });
    const expired = await this.#session.all(this.#statements.expired, { now, limit });
    return inOrder<R>([...deleting, ...expired], limit);
  }
}

/** Returns each row once, oldest first. */
function inOrder<R>(rows: readonly KeptRow[], limit: number): R[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()]
    .sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1))
    .slice(0, limit)
    .map((row) => recordOf<R>(row));
}

function rowOf(record: KeptResource): KeptRow {
  return {
    id: record.id,
    workspace_id: record.workspaceId,
    version: record.version,
    shared: record.shared ? 1 : 0,
    state: record.state,
    created_at: record.createdAt,
    expires_at: record.expiresAt,
    record: writeDocument(record),
  };
}

function recordOf<R>(row: KeptRow): R {
  return readDocument<R>(row.record);
}
