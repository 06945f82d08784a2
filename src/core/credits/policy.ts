import { accounts } from './accounts.ts';
import type { BudgetRecord } from './budget.ts';

/** The money settings of a workspace, made by an administrator: one row, read once by every admission. */
export interface MoneyPolicy {
  readonly workspaceId: string;
  /** The account that it spends from: its own, or its org's. */
  readonly purse: string;
  /** When the workspace joined that purse; left out for always. */
  readonly joinedAt?: number;
  readonly budgets: readonly BudgetRecord[];
  /** Living sandboxes at a time, and creates within a minute; `null` for no limit. */
  readonly maxLiving: number | null;
  readonly createsPerMinute: number | null;
}

export function defaultPolicy(workspaceId: string): MoneyPolicy {
  return {
    workspaceId,
    purse: accounts.credits(workspaceId),
    budgets: [],
    maxLiving: null,
    createsPerMinute: null,
  };
}
