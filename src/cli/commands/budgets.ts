import type { Command } from 'commander';
import type { BudgetSpec } from '../../client/credits.ts';
import type { Budget } from '../../contract/credits.ts';
import { durationSeconds, microUsd } from '../args/numbers.ts';
import type { Invocation } from '../invocation.ts';
import { moneyText } from '../output/amounts.ts';
import type { Column } from '../output/table.ts';
import { UsageError } from '../usage-error.ts';

const COLUMNS: Column<Budget>[] = [
  { title: 'ID', value: (row) => row.budget_id },
  { title: 'SCOPE', value: (row) => row.scope },
  { title: 'OF', cuttable: true, value: (row) => row.value ?? (row.scope === 'workspace' ? 'all' : 'each') },
  { title: 'PERIOD', value: (row) => row.period },
  { title: 'LIMIT', align: 'right', value: (row) => moneyText(row.limit_micro_usd) },
  {
    title: 'USED',
    align: 'right',
    value: ({ used }) =>
      moneyText(Math.max(0, ...used.map((entry) => entry.spent_micro_usd + entry.held_micro_usd))),
  },
  { title: 'RESETS', value: (row) => row.resets_at ?? '-' },
];

function oneOf<T extends string>(names: readonly T[]) {
  return (text: string): T => {
    const found = names.find((name) => name === text);
    if (found) return found;
    throw new UsageError(`"${text}" is not one of ${names.join(', ')}.`);
  };
}

const SCOPES = ['workspace', 'key', 'profile', 'actor', 'run'] as const;
const PERIODS = ['day', 'week', 'month', 'lifetime'] as const;

export function define(command: Command, invocation: Invocation): void {
  const show = (budgets: readonly Budget[]) => {
    const { printer } = invocation;
    printer.result({ items: budgets }, () => {
      if (budgets.length === 0) printer.note('There are no budgets.');
      else printer.table(COLUMNS, budgets);
    });
  };
  command
    .command('list', { isDefault: true })
    .description('List the budgets and what is left of them')
    .action(async () => show(await (await invocation.client()).credits.budgets()));
  command
    .command('create')
    .description('Limit what may be spent')
    .argument('<usd>', 'US dollars, such as 5 or 0.25', microUsd)
    .option('--scope <scope>', SCOPES.join(', '), oneOf(SCOPES), 'workspace')
    .option('--of <name>', 'which key, profile, actor or run; each of them when left out')
    .option('--period <period>', PERIODS.join(', '), oneOf(PERIODS), 'month')
    .option('--throttle <duration>', 'from 80 % on, one new sandbox in so much time', durationSeconds)
    .option('--own-keys', 'count what runs under keys of your own, too')
    .action(
      async (
        amount: number,
        flags: Pick<BudgetSpec, 'scope' | 'period'> & {
          readonly of?: string;
          readonly throttle?: number;
          readonly ownKeys?: boolean;
        },
      ) => {
        const budget = await (await invocation.client()).credits.createBudget({
          scope: flags.scope,
          period: flags.period,
          limit_micro_usd: amount,
          ...(flags.of === undefined ? {} : { value: flags.of }),
          ...(flags.ownKeys === undefined ? {} : { own_keys: flags.ownKeys }),
          ...(flags.throttle === undefined ? {} : { throttle_seconds: flags.throttle }),
        });
        const { printer } = invocation;
        printer.result(budget, () => printer.table(COLUMNS, [budget]));
      },
    );
  command
    .command('delete')
    .description('Take a budget away')
    .argument('<id>')
    .action(async (id: string) => {
      await (await invocation.client()).credits.deleteBudget(id);
      const { printer } = invocation;
      printer.result({ budget_id: id, deleted: true }, () => printer.note(`${id} is gone.`));
    });
}
