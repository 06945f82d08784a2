import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { LedgerStore } from '../../core/store.ts';
import type { HoldRecord, TransferDraft, TransferRecord } from '../../core/transfer.ts';
import { conflict } from '../rejections.ts';
import { assertTransfers, transferExists } from '../transfer-rules.ts';
import { RowWriter } from './row-writer.ts';
import type { HoldRow, Schema, TransferRow } from './schema.ts';
import { Sequence } from './sequence.ts';
import type { SqlSession } from './sql-session.ts';
import { prepare } from './statement.ts';

interface Sum {
  readonly sum: number | string | null;
}

export function ledgerStatements(db: Kysely<Schema>) {
  return {
    db,
    holdRows: new RowWriter(db, 'holds'),
    transferRows: new RowWriter(db, 'transfers'),
    sequence: new Sequence(db, 'transfers'),
    transfer: prepare<{ id: string }, TransferRow>(({ id }) =>
      db.selectFrom('transfers').selectAll().where('id', '=', id),
    ),
    hold: prepare<{ id: string }, HoldRow>(({ id }) =>
      db.selectFrom('holds').selectAll().where('id', '=', id),
    ),
    balance: prepare<{ account: string }, Sum>(({ account }) =>
      db.selectNoFrom(
        sql<number>`
          (select coalesce(sum(amount_micro_usd), 0) from transfers where credit = ${account})
          - (select coalesce(sum(amount_micro_usd), 0) from transfers where debit = ${account})
        `.as('sum'),
      ),
    ),
    granted: prepare<{ workspaceId: string }, Sum>(({ workspaceId }) =>
      db
        .selectFrom('transfers')
        .select((row) => row.fn.sum<number>('amount_micro_usd').as('sum'))
        .where('workspace_id', '=', workspaceId)
        .where('kind', '=', sql.lit('grant')),
    ),
    held: prepare<{ holdId: string }, Sum>(({ holdId }) =>
      db
        .selectFrom('transfers')
        .select(
          sql<number | null>`sum(
            case when substr(credit, 1, 5) = 'held:' then amount_micro_usd else 0 end
            - case when substr(debit, 1, 5) = 'held:' then amount_micro_usd else 0 end
          )`.as('sum'),
        )
        .where('hold_id', '=', holdId),
    ),
  };
}

export class SqlLedger implements LedgerStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof ledgerStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof ledgerStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async transfer(drafts: readonly TransferDraft[]): Promise<void> {
    this.#session.assertWritable();
    assertTransfers(drafts);
    for (const { id } of drafts) if (await this.getTransfer(id)) throw transferExists(id);
    if (drafts.length === 0) return;
    const firstSeq = await this.#statements.sequence.take(this.#session, drafts.length);
    for (const [i, draft] of drafts.entries()) {
      const row = transferRow({ ...draft, seq: firstSeq + i });
      const inserted = await this.#session.change(this.#statements.transferRows.insert(row));
      if (inserted === 0) throw transferExists(draft.id);
    }
  }

  async getTransfer(id: string): Promise<TransferRecord | null> {
    const row = await this.#session.first(this.#statements.transfer, { id });
    return row && transferRecord(row);
  }

  async balance(account: string): Promise<number> {
    return Number((await this.#session.first(this.#statements.balance, { account }))?.sum ?? 0);
  }

  async granted(workspaceId: string): Promise<number> {
    return Number((await this.#session.first(this.#statements.granted, { workspaceId }))?.sum ?? 0);
  }

  async held(holdId: string): Promise<number> {
    return Number((await this.#session.first(this.#statements.held, { holdId }))?.sum ?? 0);
  }

  async insertHold(hold: HoldRecord): Promise<void> {
    const inserted = await this.#session.change(this.#statements.holdRows.insert(holdRow(hold)));
    if (inserted === 0) throw conflict(`The hold ${hold.id} exists.`);
  }

  async getHold(id: string): Promise<HoldRecord | null> {
    const row = await this.#session.first(this.#statements.hold, { id });
    return row && holdRecord(row);
  }

  async updateHold(hold: HoldRecord): Promise<void> {
    const { id, ...rest } = holdRow(hold);
    const updated = await this.#session.change(this.#statements.holdRows.update(rest, { id }));
    if (updated === 0) throw conflict(`The hold ${id} is gone.`);
  }

  async transfers(query: {
    readonly workspaceId: string | null;
    readonly after: number;
    readonly limit: number;
  }): Promise<readonly TransferRecord[]> {
    let select = this.#statements.db.selectFrom('transfers').selectAll().where('seq', '>', query.after);
    if (query.workspaceId !== null) select = select.where('workspace_id', '=', query.workspaceId);
    const rows = await this.#session.query(select.orderBy('seq').limit(query.limit).compile());
    return rows.map(transferRecord);
  }
}

function transferRow(record: TransferRecord): TransferRow {
  return {
    seq: record.seq,
    id: record.id,
    at: record.at,
    kind: record.kind,
    debit: record.debit,
    credit: record.credit,
    amount_micro_usd: record.amountMicroUsd,
    workspace_id: record.workspaceId,
    hold_id: record.holdId,
    sandbox_uid: record.sandboxUid,
  };
}

function transferRecord(row: TransferRow): TransferRecord {
  return {
    seq: row.seq,
    id: row.id,
    at: row.at,
    kind: row.kind as TransferRecord['kind'],
    debit: row.debit,
    credit: row.credit,
    amountMicroUsd: row.amount_micro_usd,
    workspaceId: row.workspace_id,
    holdId: row.hold_id,
    sandboxUid: row.sandbox_uid,
  };
}

function holdRow(record: HoldRecord): HoldRow {
  return {
    id: record.id,
    workspace_id: record.workspaceId,
    sandbox_uid: record.sandboxUid,
    generation: record.generation,
    state: record.state,
    created_at: record.createdAt,
    resolved_at: record.resolvedAt,
  };
}

function holdRecord(row: HoldRow): HoldRecord {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    sandboxUid: row.sandbox_uid,
    generation: row.generation,
    state: row.state as HoldRecord['state'],
    createdAt: row.created_at,
    resolvedAt: row.resolved_at,
  };
}
