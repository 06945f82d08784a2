/**
 * The chart of accounts. A balance is credits minus debits: what we owe is above zero, what came from outside below.
 * Three ledgers share one journal; each sums to zero by itself, and no transfer goes from one to the other.
 */
export const accounts = {
  /** The account through which money enters and leaves: cards, invoices, gifts. */
  external: 'asset:external',
  /** The purse of a workspace. */
  credits: (workspaceId: string) => `liab:credits:${workspaceId}`,
  /** The purse that the workspaces of an org share. */
  orgCredits: (orgId: string) => `liab:credits:org:${orgId}`,
  /** The reserved part of a purse, which is one of the two above. */
  held: (purse: string) => purse.replace('liab:credits:', 'liab:held:'),
  revenue: (extensionId: string) => `revenue:usage:${extensionId}`,
  /** The cost of a backend's use to us, and our debt for it. */
  providerExpense: (extensionId: string) => `expense:provider:${extensionId}`,
  providerDebt: (extensionId: string) => `liab:provider:${extensionId}`,
  /** Establishments that failed, and the time before `ready`: never the customer's. */
  insurance: 'expense:insurance',
  /** Attempts that another one outran. */
  hedge: 'expense:hedge',
  /** The third ledger: use that vendors bill to our customers directly. No account of money is touched. */
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

/**
 * Whether an account may fall below zero: money from outside, our own spending and that of own keys, and what a budget has given
 * out.
 */
export function mayBeNegative(account: string): boolean {
  return /^(asset:external$|expense:|budget:quota:|revenue:|memo:byok:)/.test(account);
}
