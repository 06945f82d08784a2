import type { Kysely } from 'kysely';
import type { ProfileStore, PushedProfile } from '../../../core/ports/store/profile-store.ts';
import { conflict } from '../../rejections.ts';
import { readDocument, writeDocument } from '../session/document.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { ProfileRow, Schema } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function profileStatements(db: Kysely<Schema>) {
  const inOrder = db
    .selectFrom('profiles')
    .selectAll()
    .orderBy('workspace_id')
    .orderBy('id')
    .orderBy('version');
  return {
    rows: new RowWriter(db, 'profiles'),
    get: prepare<{ workspaceId: string; id: string; version: string }, ProfileRow>(
      ({ workspaceId, id, version }) =>
        db
          .selectFrom('profiles')
          .selectAll()
          .where('workspace_id', '=', workspaceId)
          .where('id', '=', id)
          .where('version', '=', version),
    ),
    all: prepare<object, ProfileRow>(() => inOrder),
    ofWorkspace: prepare<{ workspaceId: string }, ProfileRow>(({ workspaceId }) =>
      inOrder.where('workspace_id', '=', workspaceId),
    ),
  };
}

export class SqlProfiles implements ProfileStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof profileStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof profileStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async get(workspaceId: string, id: string, version: string): Promise<PushedProfile | null> {
    const row = await this.#session.first(this.#statements.get, { workspaceId, id, version });
    return row && pushedProfile(row);
  }

  async insert(pushed: PushedProfile): Promise<void> {
    const { id, version } = pushed.profile;
    const row = {
      workspace_id: pushed.workspaceId,
      id,
      version,
      profile: writeDocument(pushed.profile),
      source: writeDocument(pushed.source),
      created_at: pushed.createdAt,
    };
    const inserted = await this.#session.change(this.#statements.rows.insert(row));
    if (inserted === 0) throw conflict(`The profile ${id}@${version} exists.`);
  }

  async list(workspaceId: string | null): Promise<readonly PushedProfile[]> {
    const rows =
      workspaceId === null
        ? await this.#session.all(this.#statements.all, {})
        : await this.#session.all(this.#statements.ofWorkspace, { workspaceId });
    return rows.map(pushedProfile);
  }
}

function pushedProfile(row: ProfileRow): PushedProfile {
  return {
    workspaceId: row.workspace_id,
    profile: readDocument(row.profile),
    source: readDocument(row.source),
    createdAt: row.created_at,
  };
}
