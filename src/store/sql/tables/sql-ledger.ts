import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { GrantRecord } from '../../../core/credits/grant.ts';
import type { MoneyPolicy } from '../../../core/credits/policy.ts';
import type {
  HoldRecord,
  TransferDraft,
  TransferKind,
  TransferRecord,
} from '../../../core/credits/transfer.ts';
import { CHAIN_START, chained, FUNDING_KINDS } from '../../../core/credits/transfer.ts';
import type { BudgetState, LedgerStore, TransferQuery } from '../../../core/ports/store/ledger-store.ts';
import { conflict } from '../../rejections.ts';
import { assertTransfers, transferExists } from '../../transfer-rules.ts';
import { atMost } from '../session/at-most.ts';
import { readDocument, writeDocument } from '../session/document.ts';
import { RowWriter } from '../session/row-writer.ts';
import type {
  AccountRow,
  BudgetStateRow,
  FundingRow,
  GrantRow,
  HoldRow,
  PolicyRow,
  Schema,
  TransferRow,
} from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

const literals = (kinds: readonly TransferKind[]) => sql.join(kinds.map((kind) => sql.lit(kind)));

export function ledgerStatements(db: Kysely<Schema>) {
  return {
    db,
    holdRows: new RowWriter(db, 'holds'),
    transferRows: new RowWriter(db, 'transfers'),
    grantRows: new RowWriter(db, 'grants'),
    policyRows: new RowWriter(db, 'money_policies'),
    budgetStateRows: new RowWriter(db, 'budget_states'),
    transfer: prepare<{ id: string }, TransferRow>(({ id }) =>
      db.selectFrom('transfers').selectAll().where('id', '=', id),
    ),
    head: prepare<object, Pick<TransferRow, 'seq' | 'hash'>>(() =>
      db
        .selectFrom('transfers')
        .select(['seq', 'hash'])
        .where('seq', '>', sql.lit(0))
        .orderBy('seq', 'desc')
        .limit(sql.lit(1)),
    ),
    hold: prepare<{ id: string }, HoldRow>(({ id }) =>
      db.selectFrom('holds').selectAll().where('id', '=', id),
    ),
    openHolds: prepare<{ after: string; limit: number }, HoldRow>(({ after, limit }) =>
      db
        .selectFrom('holds')
        .selectAll()
        .where('state', '=', 'open')
        .where('id', '>', after)
        .orderBy('id')
        .limit(atMost(limit)),
    ),
    balance: prepare<{ account: string }, Pick<AccountRow, 'balance'>>(({ account }) =>
      db.selectFrom('ledger_accounts').select('balance').where('account', '=', account),
    ),
    balances: prepare<object, AccountRow>(() =>
      db
        .selectFrom('ledger_accounts')
        .selectAll()
        .where('account', '>', '')
        .where('balance', '!=', 0)
        .orderBy('account'),
    ),
    add: prepare<{ account: string; amount: number }, unknown>(({ account, amount }) =>
      db
        .insertInto('ledger_accounts')
        .values({ account, balance: amount })
        .onConflict((row) =>
          row.column('account').doUpdateSet({ balance: sql`ledger_accounts.balance + excluded.balance` }),
        ),
    ),
    funding: prepare<{ workspaceId: string }, FundingRow>(({ workspaceId }) =>
      db
        .selectFrom('transfers')
        .select((row) => ['kind', row.fn.sum<number>('amount_micro_usd').as('sum')])
        .where('workspace_id', '=', workspaceId)
        .where(sql<boolean>`kind in (${literals(FUNDING_KINDS)})`)
        .groupBy('kind'),
    ),
    liveGrants: prepare<{ purse: string }, GrantRow>(({ purse }) =>
      db
        .selectFrom('grants')
        .selectAll()
        .where('purse', '=', purse)
        .where('ended_at', 'is', null)
        .orderBy('created_at')
        .orderBy('id'),
    ),
    dueGrants: prepare<{ now: number; limit: number }, GrantRow>(({ now, limit }) =>
      db
        .selectFrom('grants')
        .selectAll()
        .where('ended_at', 'is', null)
        .where('expires_at', 'is not', null)
        .where('expires_at', '<=', now)
        .orderBy('expires_at')
        .orderBy('id')
        .limit(atMost(limit)),
    ),
    policy: prepare<{ workspaceId: string }, PolicyRow>(({ workspaceId }) =>
      db.selectFrom('money_policies').selectAll().where('workspace_id', '=', workspaceId),
    ),
    budgetState: prepare<{ mark: string }, BudgetStateRow>(({ mark }) =>
      db.selectFrom('budget_states').selectAll().where('mark', '=', mark),
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
    // A single transfer is refused by its own insert; several are refused before the first of them is written.
    if (drafts.length > 1) {
      for (const { id } of drafts) if (await this.getTransfer(id)) throw transferExists(id);
    }
    const head = await this.#session.first(this.#statements.head, {});
    let seq = head?.seq ?? 0;
    let hash = head?.hash ?? CHAIN_START;
    for (const draft of drafts) {
      const record = chained(draft, seq + 1, hash);
      const inserted = await this.#session.change(this.#statements.transferRows.insert(transferRow(record)));
      if (inserted === 0) throw transferExists(draft.id);
      const { debit, credit, amountMicroUsd } = draft;
      await this.#session.run(this.#statements.add, { account: debit, amount: -amountMicroUsd });
      await this.#session.run(this.#statements.add, { account: credit, amount: amountMicroUsd });
      ({ seq, hash } = record);
    }
  }

  async getTransfer(id: string): Promise<TransferRecord | null> {
    const row = await this.#session.first(this.#statements.transfer, { id });
    return row && transferRecord(row);
  }

  async balance(account: string): Promise<number> {
    return Number((await this.#session.first(this.#statements.balance, { account }))?.balance ?? 0);
  }

  async balances(): Promise<readonly { readonly account: string; readonly balance: number }[]> {
    const rows = await this.#session.all(this.#statements.balances, {});
    return rows.map(({ account, balance }) => ({ account, balance: Number(balance) }));
  }

  async funding(workspaceId: string): Promise<ReadonlyMap<TransferKind, number>> {
    const rows = await this.#session.all(this.#statements.funding, { workspaceId });
    return new Map(rows.map(({ kind, sum }) => [kind as TransferKind, Number(sum ?? 0)]));
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

  async openHolds(afterId: string | null, limit: number): Promise<readonly HoldRecord[]> {
    const rows = await this.#session.all(this.#statements.openHolds, { after: afterId ?? '', limit });
    return rows.map(holdRecord);
  }

  async transfers(query: TransferQuery): Promise<readonly TransferRecord[]> {
    let select = this.#statements.db.selectFrom('transfers').selectAll().where('seq', '>', query.after);
    if (query.workspaceId !== null) select = select.where('workspace_id', '=', query.workspaceId);
    if (query.kinds) select = select.where(sql<boolean>`kind in (${literals(query.kinds)})`);
    if (query.from !== undefined) select = select.where('at', '>=', query.from);
    if (query.to !== undefined) select = select.where('at', '<', query.to);
    if (query.before !== undefined) select = select.where('seq', '<', query.before);
    const ordered = select.orderBy('seq', query.before === undefined ? 'asc' : 'desc');
    const rows = await this.#session.query(ordered.limit(atMost(query.limit)).compile());
    return rows.map(transferRecord);
  }

  async insertGrant(grant: GrantRecord): Promise<void> {
    const inserted = await this.#session.change(this.#statements.grantRows.insert(grantRow(grant)));
    if (inserted === 0) throw conflict(`The grant ${grant.id} exists.`);
  }

  async updateGrant(grant: GrantRecord): Promise<void> {
    const { id, ...rest } = grantRow(grant);
    const updated = await this.#session.change(this.#statements.grantRows.update(rest, { id }));
    if (updated === 0) throw conflict(`The grant ${id} is gone.`);
  }

  async liveGrants(purse: string): Promise<readonly GrantRecord[]> {
    return (await this.#session.all(this.#statements.liveGrants, { purse })).map(grantRecord);
  }

  async dueGrants(now: number, limit: number): Promise<readonly GrantRecord[]> {
    return (await this.#session.all(this.#statements.dueGrants, { now, limit })).map(grantRecord);
  }

  async policy(workspaceId: string): Promise<MoneyPolicy | null> {
    const row = await this.#session.first(this.#statements.policy, { workspaceId });
    return row && readDocument<MoneyPolicy>(row.policy);
  }

  async setPolicy(policy: MoneyPolicy): Promise<void> {
    const row = { workspace_id: policy.workspaceId, policy: writeDocument(policy) };
    await this.#session.change(this.#statements.policyRows.upsert(row, ['workspace_id']));
  }

  async budgetState(mark: string): Promise<BudgetState | null> {
    const row = await this.#session.first(this.#statements.budgetState, { mark });
    return row && { mark, told: row.told, admittedAt: row.admitted_at };
  }

  async setBudgetState({ mark, told, admittedAt }: BudgetState): Promise<void> {
    const row = { mark, told, admitted_at: admittedAt };
    await this.#session.change(this.#statements.budgetStateRows.upsert(row, ['mark']));
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
    price_version: record.priceVersion,
    linked_to: record.linkedTo,
    reference: record.reference,
    hash: record.hash,
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
    priceVersion: row.price_version,
    linkedTo: row.linked_to,
    reference: row.reference,
    hash: row.hash,
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
    purse: record.purse,
    held_micro_usd: record.heldMicroUsd,
    captured_micro_usd: record.capturedMicroUsd,
    budgets: writeDocument(record.budgets),
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
    purse: row.purse,
    heldMicroUsd: row.held_micro_usd,
    capturedMicroUsd: row.captured_micro_usd,
    budgets: readDocument(row.budgets),
  };
}

function grantRow(record: GrantRecord): GrantRow {
  return {
    id: record.id,
    workspace_id: record.workspaceId,
    purse: record.purse,
    kind: record.kind,
    amount_micro_usd: record.amountMicroUsd,
    remaining_micro_usd: record.remainingMicroUsd,
    created_at: record.createdAt,
    expires_at: record.expiresAt,
    ended_at: record.endedAt,
  };
}

function grantRecord(row: GrantRow): GrantRecord {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    purse: row.purse,
    kind: row.kind as GrantRecord['kind'],
    amountMicroUsd: row.amount_micro_usd,
    remainingMicroUsd: row.remaining_micro_usd,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    endedAt: row.ended_at,
  };
}
