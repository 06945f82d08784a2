import type { GrantRecord } from '../../core/credits/grant.ts';
import type { MoneyPolicy } from '../../core/credits/policy.ts';
import type { HoldRecord, TransferDraft, TransferKind, TransferRecord } from '../../core/credits/transfer.ts';
import { CHAIN_START, chained, FUNDING_KINDS } from '../../core/credits/transfer.ts';
import type { BudgetState, LedgerStore, TransferQuery } from '../../core/ports/store/ledger-store.ts';
import { conflict } from '../rejections.ts';
import { assertTransfers, transferExists } from '../transfer-rules.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

/** Sums follow the rows, one for one, forwards and back: they are integers, so nothing is lost. */
export class MemoryLedger implements LedgerStore {
  readonly #journal: MemoryJournal;
  readonly #holds: MemoryTable<HoldRecord>;
  readonly #grants: MemoryTable<GrantRecord>;
  readonly #policies: MemoryTable<MoneyPolicy>;
  readonly #budgetStates: MemoryTable<BudgetState>;
  readonly #rows: TransferRecord[] = [];
  readonly #byId = new Map<string, TransferRecord>();
  readonly #byWorkspace = new Map<string, TransferRecord[]>();
  readonly #balances = new Map<string, number>();

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#holds = new MemoryTable(journal);
    this.#grants = new MemoryTable(journal);
    this.#policies = new MemoryTable(journal);
    this.#budgetStates = new MemoryTable(journal);
  }

  async transfer(drafts: readonly TransferDraft[]): Promise<void> {
    this.#journal.assertWritable();
    assertTransfers(drafts);
    for (const { id } of drafts) if (this.#byId.has(id)) throw transferExists(id);
    for (const draft of drafts) {
      const record = chained(draft, this.#rows.length + 1, this.#rows.at(-1)?.hash ?? CHAIN_START);
      this.#rows.push(record);
      this.#byId.set(record.id, record);
      const ofWorkspace = this.#byWorkspace.get(record.workspaceId);
      if (ofWorkspace === undefined) this.#byWorkspace.set(record.workspaceId, [record]);
      else ofWorkspace.push(record);
      this.#add(record, 1);
      this.#journal.wrote(() => {
        this.#rows.pop();
        this.#byId.delete(record.id);
        this.#byWorkspace.get(record.workspaceId)?.pop();
        this.#add(record, -1);
      });
    }
  }

  async getTransfer(id: string): Promise<TransferRecord | null> {
    return this.#byId.get(id) ?? null;
  }

  async balance(account: string): Promise<number> {
    return this.#balances.get(account) ?? 0;
  }

  async balances(): Promise<readonly { readonly account: string; readonly balance: number }[]> {
    return [...this.#balances]
      .filter(([, balance]) => balance !== 0)
      .map(([account, balance]) => ({ account, balance }))
      .sort((a, b) => (a.account < b.account ? -1 : 1));
  }

  async funding(workspaceId: string): Promise<ReadonlyMap<TransferKind, number>> {
    const sums = new Map<TransferKind, number>();
    for (const { kind, amountMicroUsd } of this.#byWorkspace.get(workspaceId) ?? []) {
      if ((FUNDING_KINDS as readonly TransferKind[]).includes(kind)) addTo(sums, kind, amountMicroUsd);
    }
    return sums;
  }

  async insertHold(hold: HoldRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#holds.has(hold.id)) throw conflict(`The hold ${hold.id} exists.`);
    this.#holds.set(hold.id, hold);
  }

  async getHold(id: string): Promise<HoldRecord | null> {
    return this.#holds.get(id) ?? null;
  }

  async updateHold(hold: HoldRecord): Promise<void> {
    this.#journal.assertWritable();
    if (!this.#holds.has(hold.id)) throw conflict(`The hold ${hold.id} is gone.`);
    this.#holds.set(hold.id, hold);
  }

  async openHolds(afterId: string | null, limit: number): Promise<readonly HoldRecord[]> {
    return [...this.#holds.values()]
      .filter(({ id, state }) => state === 'open' && id > (afterId ?? ''))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  async transfers({
    workspaceId,
    kinds,
    from,
    to,
    after,
    before,
    limit,
  }: TransferQuery): Promise<readonly TransferRecord[]> {
    const rows = workspaceId === null ? this.#rows : (this.#byWorkspace.get(workspaceId) ?? []);
    const wanted = (row: TransferRecord) =>
      row.seq > after &&
      (before === undefined || row.seq < before) &&
      (kinds === undefined || kinds.includes(row.kind)) &&
      (from === undefined || row.at >= from) &&
      (to === undefined || row.at < to);
    const found = rows.filter(wanted);
    return (before === undefined ? found : found.reverse()).slice(0, limit);
  }

  async insertGrant(grant: GrantRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#grants.has(grant.id)) throw conflict(`The grant ${grant.id} exists.`);
    this.#grants.set(grant.id, grant);
  }

  async updateGrant(grant: GrantRecord): Promise<void> {
    this.#journal.assertWritable();
    if (!this.#grants.has(grant.id)) throw conflict(`The grant ${grant.id} is gone.`);
    this.#grants.set(grant.id, grant);
  }

  async liveGrants(purse: string): Promise<readonly GrantRecord[]> {
    return [...this.#grants.values()]
      .filter((grant) => grant.purse === purse && grant.endedAt === null)
      .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  }

  async dueGrants(now: number, limit: number): Promise<readonly GrantRecord[]> {
    const endsAt = ({ expiresAt }: GrantRecord) => expiresAt ?? Number.POSITIVE_INFINITY;
    return [...this.#grants.values()]
      .filter((grant) => grant.endedAt === null && endsAt(grant) <= now)
      .sort((a, b) => endsAt(a) - endsAt(b) || (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  async policy(workspaceId: string): Promise<MoneyPolicy | null> {
    return this.#policies.get(workspaceId) ?? null;
  }

  async setPolicy(policy: MoneyPolicy): Promise<void> {
    this.#journal.assertWritable();
    this.#policies.set(policy.workspaceId, policy);
  }

  async budgetState(mark: string): Promise<BudgetState | null> {
    return this.#budgetStates.get(mark) ?? null;
  }

  async setBudgetState(state: BudgetState): Promise<void> {
    this.#journal.assertWritable();
    this.#budgetStates.set(state.mark, state);
  }

  rows(): readonly TransferRecord[] {
    return this.#rows;
  }

  #add({ debit, credit, amountMicroUsd }: TransferDraft, sign: 1 | -1): void {
    addTo(this.#balances, debit, -sign * amountMicroUsd);
    addTo(this.#balances, credit, sign * amountMicroUsd);
  }
}

function addTo<Key>(sums: Map<Key, number>, key: Key, amount: number): void {
  sums.set(key, (sums.get(key) ?? 0) + amount);
}
