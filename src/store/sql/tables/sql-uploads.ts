import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { UploadRecord } from '../../../core/assets/upload.ts';
import type { Page } from '../../../core/ports/store/page.ts';
import type { UploadQuery, UploadStore } from '../../../core/ports/store/upload-store.ts';
import { decodeCursor, encodeCursor } from '../../page-cursor.ts';
import { atMost } from '../session/at-most.ts';
import { readDocument, writeDocument } from '../session/document.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { Schema, UploadRow } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function uploadStatements(db: Kysely<Schema>) {
  const users = db
    .selectFrom('upload_uses as used')
    .innerJoin('sandboxes as s', 's.uid', 'used.sandbox_uid')
    .select('s.uid')
    .where('s.state', '<>', 'destroyed');
  return {
    db,
    rows: new RowWriter(db, 'uploads'),
    uses: new RowWriter(db, 'upload_uses'),
    get: prepare<{ id: string }, UploadRow>(({ id }) =>
      db.selectFrom('uploads').selectAll().where('id', '=', id),
    ),
    user: prepare<{ id: string }, { uid: string }>(({ id }) =>
      users.where('used.upload_id', '=', id).limit(1),
    ),
    totalBytes: prepare<{ workspaceId: string }, { total: number | null }>(({ workspaceId }) =>
      db
        .selectFrom('uploads')
        .select(({ fn }) => fn.sum<number | null>('size_bytes').as('total'))
        .where('workspace_id', '=', workspaceId),
    ),
    due: prepare<{ now: number; limit: number }, UploadRow>(({ now, limit }) =>
      db
        .selectFrom('uploads as u')
        .selectAll()
        .where('u.expires_at', '<=', now)
        .where(({ not, exists }) => not(exists(users.where('used.upload_id', '=', sql.ref<string>('u.id')))))
        .orderBy('u.expires_at')
        .orderBy('u.id')
        .limit(atMost(limit)),
    ),
    remove: prepare<{ id: string }, unknown>(({ id }) => db.deleteFrom('uploads').where('id', '=', id)),
    removeUses: prepare<{ id: string }, unknown>(({ id }) =>
      db.deleteFrom('upload_uses').where('upload_id', '=', id),
    ),
  };
}

export class SqlUploads implements UploadStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof uploadStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof uploadStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async get(id: string): Promise<UploadRecord | null> {
    const row = await this.#session.first(this.#statements.get, { id });
    return row && uploadRecord(row);
  }

  async put(record: UploadRecord): Promise<UploadRecord> {
    const { rows } = this.#statements;
    if ((await this.#session.change(rows.insert(uploadRow(record)))) > 0) return record;
    const there = (await this.get(record.id)) as UploadRecord;
    const stored = { ...there, expiresAt: Math.max(there.expiresAt, record.expiresAt) };
    await this.#session.change(rows.update({ expires_at: stored.expiresAt }, { id: record.id }));
    return stored;
  }

  async use(uploadId: string, sandboxUid: string): Promise<void> {
    const row = { upload_id: uploadId, sandbox_uid: sandboxUid };
    await this.#session.change(this.#statements.uses.insert(row));
  }

  async inUse(id: string): Promise<boolean> {
    return (await this.#session.first(this.#statements.user, { id })) !== null;
  }

  async list({ workspaceId, cursor, limit }: UploadQuery): Promise<Page<UploadRecord>> {
    const from = decodeCursor(cursor);
    let query = this.#statements.db.selectFrom('uploads').selectAll();
    if (workspaceId !== null) query = query.where('workspace_id', '=', workspaceId);
    if (from !== null) query = query.where(sql<boolean>`(created_at, id) < (${from.createdAt}, ${from.key})`);
    const rows = await this.#session.query(
      query
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(atMost(limit + 1))
        .compile(),
    );
    const items = rows.slice(0, limit).map(uploadRecord);
    const last = items.at(-1);
    const more = rows.length > limit && last !== undefined;
    return { items, nextCursor: more ? encodeCursor({ createdAt: last.createdAt, key: last.id }) : null };
  }

  async totalBytes(workspaceId: string): Promise<number> {
    return Number((await this.#session.first(this.#statements.totalBytes, { workspaceId }))?.total ?? 0);
  }

  async due(now: number, limit: number): Promise<readonly UploadRecord[]> {
    return (await this.#session.all(this.#statements.due, { now, limit })).map(uploadRecord);
  }

  async remove(id: string): Promise<void> {
    await this.#session.run(this.#statements.removeUses, { id });
    await this.#session.run(this.#statements.remove, { id });
  }
}

function uploadRow(record: UploadRecord): UploadRow {
  return {
    id: record.id,
    workspace_id: record.workspaceId,
    digest: record.digest,
    size_bytes: record.sizeBytes,
    entries: record.entries,
    origin: writeDocument(record.origin),
    created_at: record.createdAt,
    expires_at: record.expiresAt,
  };
}

function uploadRecord(row: UploadRow): UploadRecord {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    digest: row.digest,
    sizeBytes: row.size_bytes,
    entries: row.entries,
    origin: readDocument(row.origin),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}
