import type { Tx } from '../../ports/store/store.ts';
import { accounts } from '../accounts.ts';
import type { BudgetRecord, Spender } from '../budget.ts';
import { budgetMark, spenderName } from '../budget.ts';
import type { MoneyPolicy } from '../policy.ts';

/** The money that a request reserves. */
export interface Reserve {
  readonly amountMicroUsd: number;
  /** Cost under a key of the workspace's own: taken from no purse, counted by budgets that include own keys. */
  readonly ownKeyMicroUsd: number;
}

/** The reserve of each length of life: a longer one never reserves less. */
export interface Lives {
  /** The length that was requested. */
  readonly seconds: number;
  reserve(seconds: number): Reserve;
}

interface Payment {
  readonly policy: MoneyPolicy;
  readonly spender: Spender;
  readonly at: number;
}

/** The part of a reserve that a budget counts. */
export function budgetShareOf({ ownKeys }: BudgetRecord, reserve: Reserve): number {
  return Math.max(reserve.amountMicroUsd, ownKeys === true ? reserve.ownKeyMicroUsd : 0);
}

/** Returns the money left in a budget for this spender; `null` where the budget does not apply to it. */
async function budgetLeft(
  tx: Tx,
  budget: BudgetRecord,
  { spender, at }: Omit<Payment, 'policy'>,
): Promise<number | null> {
  const name = spenderName(budget, spender);
  if (name === null) return null;
  return budget.limitMicroUsd + (await tx.ledger.balance(accounts.budgetQuota(budgetMark(budget, name, at))));
}

/**
 * Finds the longest life, in whole seconds, that purse and budgets admit together: a request for it is admitted, a request
 * for one second more is refused. 0 when none is admitted.
 */
export async function affordableSeconds(tx: Tx, payment: Payment, lives: Lives): Promise<number> {
  const available = await tx.ledger.balance(payment.policy.purse);
  const budgets: { readonly budget: BudgetRecord; readonly left: number }[] = [];
  for (const budget of payment.policy.budgets) {
    const left = await budgetLeft(tx, budget, payment);
    if (left !== null) budgets.push({ budget, left });
  }
  const isAdmitted = (seconds: number): boolean => {
    const reserve = lives.reserve(seconds);
    if (Math.max(0, reserve.amountMicroUsd) > available) return false;
    return budgets.every(({ budget, left }) => {
      const share = budgetShareOf(budget, reserve);
      return share <= 0 || share <= left;
    });
  };
  let [admitted, refused] = [0, lives.seconds];
  while (refused - admitted > 1) {
    const middle = Math.floor((admitted + refused) / 2);
    if (isAdmitted(middle)) admitted = middle;
    else refused = middle;
  }
  return admitted;
}
