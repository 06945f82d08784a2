import type { GrantRecord } from '../../credits/grant.ts';
import type { MoneyPolicy } from '../../credits/policy.ts';
import type { HoldRecord, TransferDraft, TransferKind, TransferRecord } from '../../credits/transfer.ts';

export interface TransferQuery {
  readonly workspaceId: string | null;
  readonly kinds?: readonly TransferKind[];
  /** Only transfers from this time on, and before `to`. */
  readonly from?: number;
  readonly to?: number;
  readonly after: number;
  /** Only transfers with a smaller number, the newest first; when left out, the oldest first. */
  readonly before?: number;
  readonly limit: number;
}

/** The latest alert level and admission of a budget, by its mark. */
export interface BudgetState {
  readonly mark: string;
  readonly told: number;
  readonly admittedAt: number;
}

/**
 * Transfers are written once, in a chain of hashes, and never changed. Balances and what a hold has left are kept with
 * them, in the same transaction: they are what adding up the rows gives, without adding up.
 */
export interface LedgerStore {
  /** Rejects with `SBX_CONFLICT` when a transfer id exists. All of them or none. */
  transfer(drafts: readonly TransferDraft[]): Promise<void>;
  getTransfer(id: string): Promise<TransferRecord | null>;
  /** Credits minus debits. */
  balance(account: string): Promise<number>;
  /** Lists every account whose balance is not zero, by name. */
  balances(): Promise<readonly { readonly account: string; readonly balance: number }[]>;
  /** Sums of the kinds that bring money to a workspace or take it away unspent. */
  funding(workspaceId: string): Promise<ReadonlyMap<TransferKind, number>>;
  insertHold(hold: HoldRecord): Promise<void>;
  getHold(id: string): Promise<HoldRecord | null>;
  updateHold(hold: HoldRecord): Promise<void>;
  /** Lists open holds by id, after `afterId`. */
  openHolds(afterId: string | null, limit: number): Promise<readonly HoldRecord[]>;
  transfers(query: TransferQuery): Promise<readonly TransferRecord[]>;
  insertGrant(grant: GrantRecord): Promise<void>;
  updateGrant(grant: GrantRecord): Promise<void>;
  /** Lists the grants of a purse that are not ended, oldest first. */
  liveGrants(purse: string): Promise<readonly GrantRecord[]>;
  /** Returns the grants of all purses that are not ended and have `expiresAt ≤ now`. */
  dueGrants(now: number, limit: number): Promise<readonly GrantRecord[]>;
  /** `null` where nothing was decided. */
  policy(workspaceId: string): Promise<MoneyPolicy | null>;
  setPolicy(policy: MoneyPolicy): Promise<void>;
  budgetState(mark: string): Promise<BudgetState | null>;
  setBudgetState(state: BudgetState): Promise<void>;
}
