import { describe, expect, it } from 'vitest';
import { sampleTransfer } from '../../store/suite/sample-records.ts';
import { accounts } from './accounts.ts';
import { BudgetAudit } from './budget-audit.ts';
import { chained } from './transfer.ts';

const AT = Date.UTC(2026, 10, 16, 12);
const MARK = 'bgt_1:2026-11-16:r1';
const NEXT = 'bgt_1:2026-11-17:r1';
const [quota, held, spent] = [accounts.budgetQuota, accounts.budgetHeld, accounts.budgetSpent];

type Kind = 'hold' | 'capture' | 'release' | 'budget_hold' | 'budget_capture' | 'budget_release';
type Step = readonly [Kind, number, string?];

const BETWEEN: Record<string, (mark: string) => object> = {
  budget_hold: (mark) => ({ debit: quota(mark), credit: held(mark) }),
  budget_capture: (mark) => ({ debit: held(mark), credit: spent(mark) }),
  budget_release: (mark) => ({ debit: held(mark), credit: quota(mark) }),
};

function audited(steps: readonly Step[], open: readonly string[] = []): string[] {
  const found: string[] = [];
  const audit = new BudgetAudit((budgetId, detail) => found.push(`${budgetId}: ${detail}`));
  for (const [n, [kind, amountMicroUsd, mark = MARK]] of steps.entries()) {
    const draft = {
      ...sampleTransfer(`t${n}`),
      kind,
      amountMicroUsd,
      at: AT,
      holdId: 'h',
      ...BETWEEN[kind]?.(mark),
    };
    audit.add(chained(draft, n + 1, ''));
  }
  audit.finish(new Set(open));
  return found;
}

const RESERVED: Step[] = [
  ['hold', 10],
  ['budget_hold', 10],
];
const SPENT: Step[] = [...RESERVED, ['capture', 4], ['budget_capture', 4]];

describe('audit of a budget', () => {
  it('the spent amount of a budget equals the captures under it', () => {
    expect(audited([...SPENT, ['release', 6], ['budget_release', 6]])).toEqual([]);
    expect(audited(SPENT, ['h'])).toEqual([]);
  });

  it('the budget audit finds a capture that was not counted, or counted as a larger amount', () => {
    expect(audited([...RESERVED, ['capture', 4]], ['h'])).toHaveLength(1);
    expect(audited([...RESERVED, ['capture', 4], ['budget_capture', 5]], ['h'])).toHaveLength(1);
  });

  it('the budget audit finds an amount reserved for something over, or never reserved', () => {
    expect(audited(SPENT)).toEqual([expect.stringContaining('6 of it are still reserved')]);
    expect(audited([...SPENT, ['budget_capture', 7]], ['h']).length).toBeGreaterThan(0);
  });

  it('the budget audit finds a capture counted in a window it does not belong to', () => {
    expect(
      audited(
        [
          ['hold', 10],
          ['budget_hold', 10, NEXT],
        ],
        ['h'],
      ),
    ).toEqual([expect.stringContaining('2026-11-17, where it does not belong')]);
  });

  it('the spent amount of a budget may be less where the budget came later or was taken away', () => {
    const later: Step[] = [
      ['hold', 10],
      ['capture', 4],
      ['hold', 5],
      ['budget_hold', 5],
      ['capture', 9],
    ];
    expect(audited([...later, ['budget_capture', 5]], ['h'])).toEqual([]);
  });
});
