import { accounts } from './accounts.ts';
import type { BudgetPeriod } from './budget.ts';
import { windowOf } from './budget.ts';
import type { TransferRecord } from './transfer.ts';

const PERIODS: readonly BudgetPeriod[] = ['day', 'week', 'month', 'lifetime'];

/** The effect of one hold on one budget. */
interface Drawn {
  reserved: number;
  spent: number;
  /** By mark: the amount reserved in that window and neither spent nor released. */
  readonly left: Map<string, number>;
}

interface Hold {
  reserved: number;
  captured: number;
  /** A vendor's own bill was counted under it: that is more than was captured. */
  counted: boolean;
  readonly budgets: Map<string, Drawn>;
}

/**
 * Checks I12 from the transfers alone, in their order: a budget's spending is what was captured under it, in the window in which
 * it was reserved.
 */
export class BudgetAudit {
  readonly #holds = new Map<string, Hold>();
  readonly #find: (budgetId: string, detail: string) => void;

  constructor(find: (budgetId: string, detail: string) => void) {
    this.#find = find;
  }

  add({ id, at, kind, debit, credit, amountMicroUsd: amount, holdId }: TransferRecord): void {
    if (holdId === null) return;
    const hold = this.#hold(holdId);
    if (kind === 'hold') hold.reserved += amount;
    if (kind === 'capture') hold.captured += amount;
    if (kind !== 'budget_hold' && kind !== 'budget_capture' && kind !== 'budget_release') return;
    const mark = (kind === 'budget_hold' ? credit : debit).slice(accounts.budgetHeld('').length);
    const [budgetId = '', window = ''] = mark.split(':');
    const drawn = hold.budgets.get(budgetId) ?? { reserved: 0, spent: 0, left: new Map<string, number>() };
    hold.budgets.set(budgetId, drawn);
    const left = (drawn.left.get(mark) ?? 0) + (kind === 'budget_hold' ? amount : -amount);
    drawn.left.set(mark, left);
    if (left < 0) this.#find(budgetId, `${id} takes ${-left} more than ${holdId} reserved in ${window}.`);
    if (kind === 'budget_hold') {
      drawn.reserved += amount;
      if (!PERIODS.some((period) => windowOf(period, at).name === window))
        this.#find(budgetId, `${id} counts in ${window}, where it does not belong.`);
    }
    if (kind !== 'budget_capture') return;
    drawn.spent += amount;
    if (credit !== accounts.budgetSpent(mark)) this.#find(budgetId, `${id} is spent in another window.`);
    if (id.includes(':counted:')) hold.counted = true;
  }

  /** Checks the sums, after every transfer was added. */
  finish(openHolds: ReadonlySet<string>): void {
    for (const [holdId, { reserved, captured, counted, budgets }] of this.#holds)
      for (const [budgetId, drawn] of budgets) {
        const left = [...drawn.left.values()].reduce((sum, amount) => sum + amount, 0);
        if (!openHolds.has(holdId) && left !== 0)
          this.#find(budgetId, `${holdId} is resolved, and ${left} of it are still reserved.`);
        if (counted) continue;
        // A budget that was added after the sandbox, or removed, has less than the hold.
        const isWhole = drawn.reserved >= reserved;
        if (drawn.spent > captured || (isWhole && drawn.spent !== captured))
          this.#find(budgetId, `${holdId} spent ${drawn.spent} of it and captured ${captured}.`);
      }
  }

  #hold(id: string): Hold {
    const known = this.#holds.get(id);
    if (known) return known;
    const fresh: Hold = { reserved: 0, captured: 0, counted: false, budgets: new Map() };
    this.#holds.set(id, fresh);
    return fresh;
  }
}
