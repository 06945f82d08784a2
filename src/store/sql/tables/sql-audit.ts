import type { Kysely } from 'kysely';
import type { AuditQuery, AuditStore } from '../../../core/ports/store/audit-store.ts';
import type { AuditDraft, AuditRecord } from '../../../core/tenancy/audit.ts';
import { atMost } from '../session/at-most.ts';
import { readDocument, writeDocument } from '../session/document.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { AuditRow, Schema } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function auditStatements(db: Kysely<Schema>) {
  return {
    db,
    rows: new RowWriter(db, 'audit_log'),
    prune: prepare<{ before: number; limit: number }, unknown>(({ before, limit }) =>
      db
        .deleteFrom('audit_log')
        .where('seq', 'in', (from) =>
          from
            .selectFrom('audit_log')
            .select('seq')
            .where('at', '<', before)
            .orderBy('at')
            .orderBy('seq')
            .limit(atMost(limit)),
        ),
    ),
  };
}

export class SqlAudit implements AuditStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof auditStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof auditStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async append(drafts: readonly AuditDraft[]): Promise<void> {
    this.#session.assertWritable();
    for (const draft of drafts) await this.#session.change(this.#statements.rows.insert(auditRow(draft)));
  }

  async list({ workspaceId, keyId, action, target, before, limit }: AuditQuery) {
    let query = this.#statements.db.selectFrom('audit_log').selectAll();
    if (workspaceId !== null) query = query.where('workspace_id', '=', workspaceId);
    if (keyId !== undefined) query = query.where('key_id', '=', keyId);
    if (action !== undefined) query = query.where('action', '=', action);
    if (target !== undefined) query = query.where('target', '=', target);
    if (before !== undefined) query = query.where('seq', '<', before);
    const rows = await this.#session.query(query.orderBy('seq', 'desc').limit(atMost(limit)).compile());
    return rows.map(auditRecord);
  }

  async prune(before: number, limit: number): Promise<number> {
    return await this.#session.run(this.#statements.prune, { before, limit });
  }
}

/** Numbered by the database. */
function auditRow(draft: AuditDraft): Omit<AuditRow, 'seq'> {
  return {
    at: draft.at,
    workspace_id: draft.workspaceId,
    key_id: draft.keyId,
    actor: draft.actor,
    consumer: writeDocument(draft.consumer),
    action: draft.action,
    target: draft.target,
    outcome: draft.outcome,
    request_id: draft.requestId,
    details: writeDocument(draft.details),
  };
}

function auditRecord(row: AuditRow): AuditRecord {
  return {
    seq: row.seq,
    at: row.at,
    workspaceId: row.workspace_id,
    keyId: row.key_id,
    actor: row.actor as AuditRecord['actor'],
    consumer: readDocument(row.consumer),
    action: row.action,
    target: row.target,
    outcome: row.outcome,
    requestId: row.request_id,
    details: readDocument(row.details),
  };
}
