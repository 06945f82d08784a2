import { createHash } from 'node:crypto';
import type { TransferKind } from '../../contract/money/money.ts';

export type { TransferKind } from '../../contract/money/money.ts';

/** The kinds that bring spendable money to a workspace or take it away unspent. */
export const FUNDING_KINDS = ['grant', 'top_up', 'expiry', 'move'] as const satisfies TransferKind[];
/** The kinds that a bill consists of. */
export const CHARGE_KINDS = ['capture', 'correction'] as const satisfies TransferKind[];

/** Moves a positive amount from `debit` to `credit`. Never changed after it is written. */
export interface TransferDraft {
  readonly id: string;
  readonly at: number;
  readonly kind: TransferKind;
  readonly debit: string;
  readonly credit: string;
  readonly amountMicroUsd: number;
  readonly workspaceId: string;
  readonly holdId: string | null;
  readonly sandboxUid: string | null;
  /** For a charge or a cost: the prices it was worked out with. */
  readonly priceVersion?: string | null;
  /** For a correction: the transfer that it puts right. */
  readonly linkedTo?: string | null;
  /** The reason, in the words of the caller that asked for the transfer. */
  readonly reference?: string | null;
}

export interface TransferRecord extends Required<TransferDraft> {
  readonly seq: number;
  /** SHA-256 over the hash before it and everything in this record: no row can be changed, removed or slipped in. */
  readonly hash: string;
}

/** The hash that the first transfer is chained to. */
export const CHAIN_START = '';

export function chainHash(previous: string, record: Omit<TransferRecord, 'hash'>): string {
  const { seq, id, at, kind, debit, credit, amountMicroUsd, workspaceId, holdId, sandboxUid } = record;
  const { priceVersion, linkedTo, reference } = record;
  const text = JSON.stringify([
    previous,
    seq,
    id,
    at,
    kind,
    debit,
    credit,
    amountMicroUsd,
    workspaceId,
    holdId,
    sandboxUid,
    priceVersion,
    linkedTo,
    reference,
  ]);
  return createHash('sha256').update(text).digest('hex');
}

/** The draft as it is written behind the transfer that has the hash `previous`. */
export function chained(draft: TransferDraft, seq: number, previous: string): TransferRecord {
  const record = { priceVersion: null, linkedTo: null, reference: null, ...draft, seq };
  return { ...record, hash: chainHash(previous, record) };
}

/** The part of a hold that is reserved of one budget in one window. */
export interface BudgetShare {
  readonly budgetId: string;
  /** Budget, value and window: names its accounts. */
  readonly mark: string;
  readonly heldMicroUsd: number;
  /** Whether sandboxes under a key of the workspace's own are counted here. */
  readonly ownKeys?: boolean;
}

/** A reservation. Its figures follow from its transfers and are written with them; it is resolved at most once. */
export interface HoldRecord {
  readonly id: string;
  readonly workspaceId: string;
  readonly sandboxUid: string;
  readonly generation: number;
  readonly state: 'open' | 'settled' | 'voided';
  /** The purse that the hold was first taken from. The rest goes back to the purse that the workspace spends from by then. */
  readonly purse: string;
  readonly heldMicroUsd: number;
  readonly capturedMicroUsd: number;
  /** The shares of budgets, oldest first. */
  readonly budgets: readonly BudgetShare[];
  readonly createdAt: number;
  readonly resolvedAt: number | null;
}
