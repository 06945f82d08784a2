import type { TransferDraft } from '../../../src/core/credits/transfer.ts';
import type { AppliedCommit, AuditContext } from './audit-context.ts';

/** What one hold reserved and spent of one budget, and what is reserved still. */
interface Drawn {
  reserved: number;
  spent: number;
  left: number;
}

/** No budget gives out more than its limit, and what it spent is what was captured under it (I12). */
export class BudgetInvariants {
  readonly #ctx: AuditContext;
  readonly #reserved = new Map<string, number>();
  /** By hold, then by budget. */
  readonly #drawn = new Map<string, Map<string, Drawn>>();

  constructor(ctx: AuditContext) {
    this.#ctx = ctx;
  }

  onCommit({ writes, label }: AppliedCommit): void {
    const holds = new Set<string>();
    for (const write of writes) {
      if (write.table === 'transfer') this.#note(write.row, label);
      if (write.table === 'hold') holds.add(write.row.id);
    }
    for (const id of holds) this.#check(id, label);
  }

  #note({ kind, debit, credit, holdId, amountMicroUsd: amount }: TransferDraft, label: string): void {
    if (holdId === null) return;
    if (kind === 'hold') this.#reserved.set(holdId, (this.#reserved.get(holdId) ?? 0) + amount);
    if (!kind.startsWith('budget_')) return;
    const quota = [debit, credit].find((account) => account.startsWith('budget:quota:'));
    const given = quota === undefined ? 0 : -(this.#ctx.mirror.balances.get(quota) ?? 0);
    const { limitMicroUsd } = this.#ctx.scenario.budget ?? { limitMicroUsd: 0 };
    if (given > limitMicroUsd)
      this.#ctx.fail('budget-is-hard', `${quota} gave out ${given} of ${limitMicroUsd} (${label})`);
    const drawn = this.#of(holdId, debit.split(':')[2] ?? '');
    if (kind === 'budget_hold') drawn.reserved += amount;
    if (kind === 'budget_capture') drawn.spent += amount;
    drawn.left += kind === 'budget_hold' ? amount : -amount;
    if (drawn.left < 0) this.#ctx.fail('budget-is-captures', `${holdId} takes more than it has (${label})`);
  }

  #of(holdId: string, budgetId: string): Drawn {
    const budgets = this.#drawn.get(holdId) ?? new Map<string, Drawn>();
    this.#drawn.set(holdId, budgets);
    const drawn = budgets.get(budgetId) ?? { reserved: 0, spent: 0, left: 0 };
    budgets.set(budgetId, drawn);
    return drawn;
  }

  #check(holdId: string, label: string): void {
    const { mirror } = this.#ctx;
    const isOpen = mirror.holds.get(holdId)?.state === 'open';
    const captured = mirror.captured.get(holdId) ?? 0;
    for (const [budgetId, { reserved, spent, left }] of this.#drawn.get(holdId) ?? []) {
      // A budget that came later than the sandbox has less of it.
      const isWhole = reserved === this.#reserved.get(holdId);
      if (spent > captured || (isWhole && spent !== captured))
        this.#ctx.fail(
          'budget-is-captures',
          `${holdId} captured ${captured}, ${budgetId} says ${spent} (${label})`,
        );
      if (!isOpen && left !== 0)
        this.#ctx.fail('budget-is-captures', `${holdId} is over, ${left} of ${budgetId} reserved (${label})`);
    }
  }
}
