import type { Kysely } from 'kysely';
import type { TenancyStore } from '../../../core/ports/store/tenancy-store.ts';
import type { KeyRecord, OrgRecord, WorkspaceRecord } from '../../../core/tenancy/tenancy.ts';
import { conflict } from '../../rejections.ts';
import { readDocument, readDocumentOrNull, writeDocument, writeDocumentOrNull } from '../session/document.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { KeyRow, OrgRow, Schema, WorkspaceRow } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function tenancyStatements(db: Kysely<Schema>) {
  const workspaces = db.selectFrom('workspaces').selectAll().orderBy('id');
  const keys = db.selectFrom('api_keys').selectAll().orderBy('created_at').orderBy('id');
  return {
    orgRows: new RowWriter(db, 'orgs'),
    workspaceRows: new RowWriter(db, 'workspaces'),
    keyRows: new RowWriter(db, 'api_keys'),
    org: prepare<{ id: string }, OrgRow>(({ id }) => db.selectFrom('orgs').selectAll().where('id', '=', id)),
    orgs: prepare<object, OrgRow>(() => db.selectFrom('orgs').selectAll().orderBy('id')),
    workspace: prepare<{ id: string }, WorkspaceRow>(({ id }) => workspaces.where('id', '=', id)),
    allWorkspaces: prepare<object, WorkspaceRow>(() => workspaces),
    workspacesOf: prepare<{ orgId: string }, WorkspaceRow>(({ orgId }) =>
      workspaces.where('org_id', '=', orgId),
    ),
    key: prepare<{ id: string }, KeyRow>(({ id }) => keys.where('id', '=', id)),
    keyByHash: prepare<{ secretHash: string }, KeyRow>(({ secretHash }) =>
      keys.where('secret_hash', '=', secretHash),
    ),
    keyByNumber: prepare<{ number: number }, KeyRow>(({ number }) => keys.where('number', '=', number)),
    lastKeyNumber: prepare<object, { number: number | null }>(() =>
      db.selectFrom('api_keys').select(({ fn }) => fn.max('number').as('number')),
    ),
    allKeys: prepare<object, KeyRow>(() => keys),
    keysOf: prepare<{ workspaceId: string }, KeyRow>(({ workspaceId }) =>
      keys.where('workspace_id', '=', workspaceId),
    ),
  };
}

export class SqlTenancy implements TenancyStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof tenancyStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof tenancyStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async org(id: string): Promise<OrgRecord | null> {
    const row = await this.#session.first(this.#statements.org, { id });
    return row && orgRecord(row);
  }

  async insertOrg(org: OrgRecord): Promise<void> {
    const inserted = await this.#session.change(this.#statements.orgRows.insert(orgRow(org)));
    if (inserted === 0) throw conflict(`The org ${org.id} exists.`);
  }

  async updateOrg(org: OrgRecord): Promise<void> {
    const { id, ...rest } = orgRow(org);
    const updated = await this.#session.change(this.#statements.orgRows.update(rest, { id }));
    if (updated === 0) throw conflict(`The org ${id} is gone.`);
  }

  async orgs(): Promise<readonly OrgRecord[]> {
    return (await this.#session.all(this.#statements.orgs, {})).map(orgRecord);
  }

  async workspace(id: string): Promise<WorkspaceRecord | null> {
    const row = await this.#session.first(this.#statements.workspace, { id });
    return row && workspaceRecord(row);
  }

  async insertWorkspace(workspace: WorkspaceRecord): Promise<void> {
    const inserted = await this.#session.change(
      this.#statements.workspaceRows.insert(workspaceRow(workspace)),
    );
    if (inserted === 0) throw conflict(`The workspace ${workspace.id} exists.`);
  }

  async updateWorkspace(workspace: WorkspaceRecord): Promise<void> {
    const { id, ...rest } = workspaceRow(workspace);
    const updated = await this.#session.change(this.#statements.workspaceRows.update(rest, { id }));
    if (updated === 0) throw conflict(`The workspace ${id} is gone.`);
    this.#session.changedWorkspace(workspace);
  }

  async workspaces(orgId: string | null): Promise<readonly WorkspaceRecord[]> {
    const rows =
      orgId === null
        ? await this.#session.all(this.#statements.allWorkspaces, {})
        : await this.#session.all(this.#statements.workspacesOf, { orgId });
    return rows.map(workspaceRecord);
  }

  async key(id: string): Promise<KeyRecord | null> {
    const row = await this.#session.first(this.#statements.key, { id });
    return row && keyRecord(row);
  }

  async keyByHash(secretHash: string): Promise<KeyRecord | null> {
    const row = await this.#session.first(this.#statements.keyByHash, { secretHash });
    return row && keyRecord(row);
  }

  async keyByNumber(number: number): Promise<KeyRecord | null> {
    const row = await this.#session.first(this.#statements.keyByNumber, { number });
    return row && keyRecord(row);
  }

  async lastKeyNumber(): Promise<number> {
    return (await this.#session.first(this.#statements.lastKeyNumber, {}))?.number ?? 0;
  }

  async insertKey(key: KeyRecord): Promise<void> {
    const inserted = await this.#session.change(this.#statements.keyRows.insert(keyRow(key)));
    if (inserted === 0) throw conflict(`The key ${key.id} exists.`);
  }

  /** The secret of a key never changes: another secret is another key. */
  async updateKey(key: KeyRecord): Promise<void> {
    const { id, secret_hash, ...rest } = keyRow(key);
    const updated = await this.#session.change(this.#statements.keyRows.update(rest, { id, secret_hash }));
    if (updated === 0) throw conflict(`The key ${id} is gone.`);
    this.#session.changedKey(key);
  }

  async keys(workspaceId: string | null): Promise<readonly KeyRecord[]> {
    const rows =
      workspaceId === null
        ? await this.#session.all(this.#statements.allKeys, {})
        : await this.#session.all(this.#statements.keysOf, { workspaceId });
    return rows.map(keyRecord);
  }
}

function deletion({ deleted_at }: { deleted_at: number | null }): { deletedAt?: number } {
  return deleted_at === null ? {} : { deletedAt: deleted_at };
}

function orgRow({ id, name, createdAt, deletedAt }: OrgRecord): OrgRow {
  return { id, name, created_at: createdAt, deleted_at: deletedAt ?? null };
}

function orgRecord(row: OrgRow): OrgRecord {
  return { id: row.id, name: row.name, createdAt: row.created_at, ...deletion(row) };
}

function workspaceRow(record: WorkspaceRecord): WorkspaceRow {
  const { id, orgId, name, createdAt, deletedAt, policy } = record;
  return {
    id,
    org_id: orgId,
    name,
    created_at: createdAt,
    deleted_at: deletedAt ?? null,
    policy: writeDocumentOrNull(policy ?? null),
  };
}

function workspaceRecord(row: WorkspaceRow): WorkspaceRecord {
  const policy = readDocumentOrNull<NonNullable<WorkspaceRecord['policy']>>(row.policy);
  return {
    id: row.id,
    orgId: row.org_id,
    name: row.name,
    createdAt: row.created_at,
    ...deletion(row),
    ...(policy && { policy }),
  };
}

function keyRow(record: KeyRecord): KeyRow {
  return {
    id: record.id,
    workspace_id: record.workspaceId,
    name: record.name,
    secret_hash: record.secretHash,
    number: record.number,
    rotated_from: record.rotatedFrom,
    lines: writeDocument(record.lines),
    budget_line: record.budgetLine,
    actor: record.actor,
    scopes: writeDocument(record.scopes),
    created_at: record.createdAt,
    expires_at: record.expiresAt,
    revoked_at: record.revokedAt,
    last_used_at: record.lastUsedAt,
  };
}

function keyRecord(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    secretHash: row.secret_hash,
    number: row.number,
    rotatedFrom: row.rotated_from,
    lines: readDocument(row.lines),
    budgetLine: row.budget_line,
    actor: row.actor as KeyRecord['actor'],
    scopes: readDocument(row.scopes),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
  };
}
