import type { Kysely } from 'kysely';
import type { WebhookRecord } from '../../../core/events/webhook.ts';
import type { WebhookStore } from '../../../core/ports/store/webhook-store.ts';
import { conflict } from '../../rejections.ts';
import { readDocumentOrNull, writeDocumentOrNull } from '../session/document.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { Schema, WebhookRow } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function webhookStatements(db: Kysely<Schema>) {
  const all = db.selectFrom('webhooks').selectAll().orderBy('created_at').orderBy('id');
  return {
    rows: new RowWriter(db, 'webhooks'),
    get: prepare<{ id: string }, WebhookRow>(({ id }) => all.where('id', '=', id)),
    all: prepare<object, WebhookRow>(() => all),
    ofWorkspace: prepare<{ workspaceId: string }, WebhookRow>(({ workspaceId }) =>
      all.where('workspace_id', '=', workspaceId),
    ),
    remove: prepare<{ id: string }, unknown>(({ id }) => db.deleteFrom('webhooks').where('id', '=', id)),
  };
}

export class SqlWebhooks implements WebhookStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof webhookStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof webhookStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async get(id: string): Promise<WebhookRecord | null> {
    const row = await this.#session.first(this.#statements.get, { id });
    return row && webhookRecord(row);
  }

  async insert(record: WebhookRecord): Promise<void> {
    const inserted = await this.#session.change(this.#statements.rows.insert(webhookRow(record)));
    if (inserted === 0) throw conflict(`The webhook ${record.id} exists.`);
  }

  async update(record: WebhookRecord): Promise<WebhookRecord> {
    const next = { ...record, version: record.version + 1 };
    const { id, ...rest } = webhookRow(next);
    const updated = await this.#session.change(
      this.#statements.rows.update(rest, { id, version: record.version }),
    );
    if (updated === 0) throw conflict(`The webhook ${id} was changed.`);
    return next;
  }

  async remove(id: string): Promise<void> {
    await this.#session.run(this.#statements.remove, { id });
  }

  async list(workspaceId: string | null): Promise<readonly WebhookRecord[]> {
    const rows =
      workspaceId === null
        ? await this.#session.all(this.#statements.all, {})
        : await this.#session.all(this.#statements.ofWorkspace, { workspaceId });
    return rows.map(webhookRecord);
  }
}

function webhookRow(record: WebhookRecord): WebhookRow {
  return {
    id: record.id,
    workspace_id: record.workspaceId,
    version: record.version,
    url: record.url,
    types: writeDocumentOrNull(record.types),
    description: record.description,
    sealed_secret: record.sealedSecret,
    previous_secret: writeDocumentOrNull(record.previousSecret),
    created_at: record.createdAt,
    enabled_at: record.enabledAt,
    disabled: writeDocumentOrNull(record.disabled),
    event_seq: record.eventSeq,
  };
}

function webhookRecord(row: WebhookRow): WebhookRecord {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    version: row.version,
    url: row.url,
    types: readDocumentOrNull(row.types),
    description: row.description,
    sealedSecret: row.sealed_secret,
    previousSecret: readDocumentOrNull(row.previous_secret),
    createdAt: row.created_at,
    enabledAt: row.enabled_at,
    disabled: readDocumentOrNull(row.disabled),
    eventSeq: row.event_seq,
  };
}
