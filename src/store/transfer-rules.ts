import { SandboxerError } from '../contract/errors/errors.ts';
import { ledgerOf } from '../core/credits/accounts.ts';
import type { TransferDraft } from '../core/credits/transfer.ts';
import { conflict } from './rejections.ts';

/** Checks transfers before any of them is written, in every store. */
export function assertTransfers(drafts: readonly TransferDraft[]): void {
  const ids = new Set<string>();
  for (const { id, amountMicroUsd, debit, credit } of drafts) {
    if (!Number.isSafeInteger(amountMicroUsd) || amountMicroUsd <= 0) {
      throw new SandboxerError('SBX_INTERNAL', `The transfer ${id} moves ${amountMicroUsd} µ$.`, {
        retryable: false,
      });
    }
    if (debit === credit || ledgerOf(debit) !== ledgerOf(credit)) {
      throw new SandboxerError('SBX_INTERNAL', `The transfer ${id} goes from ${debit} to ${credit}.`, {
        retryable: false,
      });
    }
    if (ids.has(id)) throw transferExists(id);
    ids.add(id);
  }
}

export function transferExists(id: string): SandboxerError {
  return conflict(`The transfer ${id} is written already.`);
}
