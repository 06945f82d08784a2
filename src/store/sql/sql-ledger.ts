import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { LedgerStore } from '../../core/store.ts';
import type { HoldRecord, TransferDraft, TransferRecord } from '../../core/transfer.ts';
import { conflict } from '../rejections.ts';
import { assertTransfers, transferExists } from '../transfer-rules.ts';
import { atMost } from './at-most.ts';
import { RowWriter } from './row-writer.ts';
import type { BalanceMarkRow, HoldRow, Schema, TransferRow } from './schema.ts';
import type { SqlSession } from './sql-session.ts';
import { prepare } from './statement.ts';

export interface Sum {
  readonly sum: number | string | null;
}

export interface Sums extends Sum {
  readonly count: number | string;
  readonly last: number | null;
}

/** So many rows of an account are added up each time before their sum is written down. */
const MARK_AFTER_ROWS = 100;

export function ledgerStatements(db: Kysely<Schema>) {
  const sums = db
    .selectFrom('transfers')
    .select(({ fn }) => [
      fn.sum<number | null>('amount_micro_usd').as('sum'),
      fn.countAll<number>().as('count'),
      fn.max<number | null>('seq').as('last'),
    ]);
  return {
    db,
    holdRows: new RowWriter(db, 'holds'),
    transferRows: new RowWriter(db, 'transfers'),
    transfer: prepare<{ id: string }, TransferRow>(({ id }) =>
      db.selectFrom('transfers').selectAll().where('id', '=', id),
    ),
    hold: prepare<{ id: string }, HoldRow>(({ id }) =>
      db.selectFrom('holds').selectAll().where('id', '=', id),
    ),
    marks: new RowWriter(db, 'balance_marks'),
    mark: prepare<{ account: string }, BalanceMarkRow>(({ account }) =>
      db.selectFrom('balance_marks').selectAll().where('account', '=', account),
    ),
    credited: prepare<{ account: string; after: number }, Sums>(({ account, after }) =>
      sums.where('credit', '=', account).where('seq', '>', after),
    ),
    debited: prepare<{ account: string; after: number }, Sums>(({ account, after }) =>
      sums.where('debit', '=', account).where('seq', '>', after),
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
    // One alone is refused by its own insert; several are refused before the first of them is written.
    if (drafts.length > 1) {
      for (const { id } of drafts) if (await this.getTransfer(id)) throw transferExists(id);
    }
    for (const draft of drafts) {
      const inserted = await this.#session.change(this.#statements.transferRows.insert(transferRow(draft)));
      if (inserted === 0) throw transferExists(draft.id);
    }
  }

  async getTransfer(id: string): Promise<TransferRecord | null> {
    const row = await this.#session.first(this.#statements.transfer, { id });
    return row && transferRecord(row);
  }

  async balance(account: string): Promise<number> {
    const mark = await this.#session.first(this.#statements.mark, { account });
    const args = { account, after: mark?.seq ?? 0 };
    const credited = await this.#session.first(this.#statements.credited, args);
    const debited = await this.#session.first(this.#statements.debited, args);
    const sum = Number(mark?.sum ?? 0) + Number(credited?.sum ?? 0) - Number(debited?.sum ?? 0);
    const rows = Number(credited?.count ?? 0) + Number(debited?.count ?? 0);
    if (this.#session.writable && rows >= MARK_AFTER_ROWS) {
      const seq = Math.max(Number(credited?.last ?? 0), Number(debited?.last ?? 0));
      await this.#session.change(this.#statements.marks.upsert({ account, seq, sum }, ['account']));
    }
    return sum;
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
    const rows = await this.#session.query(select.orderBy('seq').limit(atMost(query.limit)).compile());
    return rows.map(transferRecord);
  }
}

/** Numbered by the database. No row is ever removed, so no number is ever used again. */
function transferRow(record: TransferDraft): Omit<TransferRow, 'seq'> {
  return {
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
