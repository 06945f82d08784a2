import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { ProviderKeyStore } from '../../../core/ports/store/provider-key-store.ts';
import type { ProviderKeyRecord } from '../../../core/tenancy/provider-key.ts';
import { conflict } from '../../rejections.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { ProviderKeyRow, Schema } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

const PLATFORM = '';

export function providerKeyStatements(db: Kysely<Schema>) {
  const all = db.selectFrom('provider_keys').selectAll().orderBy('workspace_id').orderBy('extension_id');
  return {
    rows: new RowWriter(db, 'provider_keys'),
    get: prepare<{ id: string }, ProviderKeyRow>(({ id }) => all.where('id', '=', id)),
    all: prepare<object, ProviderKeyRow>(() => all),
    usableBy: prepare<{ workspaceId: string; platform: string }, ProviderKeyRow>(
      ({ workspaceId, platform }) => all.where('workspace_id', 'in', [platform, workspaceId]),
    ),
    remove: prepare<{ id: string }, unknown>(({ id }) => db.deleteFrom('provider_keys').where('id', '=', id)),
    inUse: prepare<{ id: string }, { readonly attempt_id: string }>(({ id }) =>
      db
        .selectFrom('attempts')
        .select('attempt_id')
        .where('provider_key_id', '=', id)
        // The condition is written exactly as in the partial index, so that the index is used.
        .where(sql<boolean>`state <> 'gone'`)
        .limit(1),
    ),
    keepsSnapshots: prepare<{ id: string }, { readonly id: string }>(({ id }) =>
      db
        .selectFrom('snapshots')
        .select('id')
        .where('provider_key_id', '=', id)
        .where('state', '<>', 'deleted')
        .limit(1),
    ),
  };
}

export class SqlProviderKeys implements ProviderKeyStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof providerKeyStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof providerKeyStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async get(id: string): Promise<ProviderKeyRecord | null> {
    const row = await this.#session.first(this.#statements.get, { id });
    return row && providerKeyRecord(row);
  }

  async usableBy(workspaceId: string): Promise<readonly ProviderKeyRecord[]> {
    const rows = await this.#session.all(this.#statements.usableBy, { workspaceId, platform: PLATFORM });
    return rows.map(providerKeyRecord);
  }

  async list(): Promise<readonly ProviderKeyRecord[]> {
    return (await this.#session.all(this.#statements.all, {})).map(providerKeyRecord);
  }

  async insert(record: ProviderKeyRecord): Promise<void> {
    const inserted = await this.#session.change(this.#statements.rows.insert(providerKeyRow(record)));
    if (inserted === 0) throw conflict(`There is a key for ${record.extensionId} already.`);
  }

  async update(record: ProviderKeyRecord): Promise<ProviderKeyRecord> {
    const next = { ...record, version: record.version + 1 };
    const { id, ...rest } = providerKeyRow(next);
    const updated = await this.#session.change(
      this.#statements.rows.update(rest, { id, version: record.version }),
    );
    if (updated === 0) throw conflict(`The provider key ${id} was changed.`);
    return next;
  }

  async remove(id: string): Promise<void> {
    await this.#session.run(this.#statements.remove, { id });
  }

  async isUsed(id: string): Promise<boolean> {
    if ((await this.#session.first(this.#statements.inUse, { id })) !== null) return true;
    return (await this.#session.first(this.#statements.keepsSnapshots, { id })) !== null;
  }
}

function providerKeyRow(record: ProviderKeyRecord): ProviderKeyRow {
  return {
    id: record.id,
    workspace_id: record.workspaceId ?? PLATFORM,
    extension_id: record.extensionId,
    version: record.version,
    label: record.label,
    sealed: record.sealed,
    hint: record.hint,
    state: record.state,
    created_at: record.createdAt,
    checked_at: record.checkedAt,
    refused_at: record.refusedAt,
  };
}

function providerKeyRecord(row: ProviderKeyRow): ProviderKeyRecord {
  return {
    id: row.id,
    workspaceId: row.workspace_id === PLATFORM ? null : row.workspace_id,
    extensionId: row.extension_id,
    version: row.version,
    label: row.label,
    sealed: row.sealed,
    hint: row.hint,
    state: row.state as ProviderKeyRecord['state'],
    createdAt: row.created_at,
    checkedAt: row.checked_at,
    refusedAt: row.refused_at,
  };
}
