export type TransferKind = 'grant' | 'hold' | 'capture' | 'release';

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
}

export interface TransferRecord extends TransferDraft {
  readonly seq: number;
}

/** A reservation. What is left of it is a sum over its transfers; it is resolved at most once. */
export interface HoldRecord {
  readonly id: string;
  readonly workspaceId: string;
  readonly sandboxUid: string;
  readonly generation: number;
  readonly state: 'open' | 'settled' | 'voided';
  readonly createdAt: number;
  readonly resolvedAt: number | null;
}
