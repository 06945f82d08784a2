/**
 * The chart of accounts. A balance is credits minus debits: what we owe is above zero, what came from outside below.
 * Three ledgers share one journal; each sums to zero by itself, and no transfer goes from one to the other.
 */
export const accounts = {
  /** Where money enters and leaves: cards, invoices, gifts. */
  external: 'asset:external',
  /** What a workspace may spend. */
  credits: (workspaceId: string) => `liab:credits:${workspaceId}`,
  /** What the workspaces of an org may spend together. */
  orgCredits: (orgId: string) => `liab:credits:org:${orgId}`,
  /** What is reserved of a purse, which is one of the two above. */
  held: (purse: string) => purse.replace('liab:credits:', 'liab:held:'),
  revenue: (extensionId: string) => `revenue:usage:${extensionId}`,
  /** What a backend's use costs us, and what we owe it for that. */
  providerExpense: (extensionId: string) => `expense:provider:${extensionId}`,
  providerDebt: (extensionId: string) => `liab:provider:${extensionId}`,
  /** Establishments that failed, and the time before `ready`: never the customer's. */
  insurance: 'expense:insurance',
  /** Attempts that another one outran. */
  hedge: 'expense:hedge',
  /** A third ledger, of what vendors bill our customers themselves: it is nobody's money here. */
  ownKeys: (workspaceId: string) => `memo:byok:${workspaceId}`,
  ownKeyUse: (extensionId: string) => `memo:provider:${extensionId}`,
  /** The second ledger: what a budget allows in a window, what is reserved of it, what is spent. */
  budgetQuota: (mark: string) => `budget:quota:${mark}`,
  budgetHeld: (mark: string) => `budget:held:${mark}`,
  budgetSpent: (mark: string) => `budget:spent:${mark}`,
} as const;

export type LedgerName = 'money' | 'budget' | 'memo';

export function ledgerOf(account: string): LedgerName {
  if (account.startsWith('memo:')) return 'memo';
  return account.startsWith('budget:') ? 'budget' : 'money';
}

/** Only these may fall below zero: money from outside, what we or own keys spent, and what a budget has given out. */
export function mayBeNegative(account: string): boolean {
  return /^(asset:external$|expense:|budget:quota:|revenue:|memo:byok:)/.test(account);
}
