import type { Command } from 'commander';
import type { BudgetSpec } from '../../../client/resources/credits.ts';
import type { Budget } from '../../../contract/money/credits.ts';
import { choice } from '../../args/choices.ts';
import { durationSeconds, microUsd } from '../../args/numbers.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { defineList } from '../../invocation/listing.ts';
import { moneyText } from '../../output/amounts.ts';
import { relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

function columns(_rows: readonly Budget[], now: number): Column<Budget>[] {
  return [
    { title: 'ID', value: (row) => row.budget_id },
    { title: 'SCOPE', value: (row) => row.scope },
    {
      title: 'OF',
      cuttable: true,
      value: (row) => row.value ?? (row.scope === 'workspace' ? 'all' : 'each'),
    },
    { title: 'PERIOD', value: (row) => row.period },
    { title: 'LIMIT', align: 'right', value: (row) => moneyText(row.limit_micro_usd) },
    {
      title: 'USED',
      align: 'right',
      value: ({ used }) =>
        moneyText(Math.max(0, ...used.map((entry) => entry.spent_micro_usd + entry.held_micro_usd))),
    },
    { title: 'RESETS', value: (row) => relativeTime(row.resets_at, now) },
  ];
}

const SCOPES = ['workspace', 'key', 'profile', 'actor', 'run'] as const;
const PERIODS = ['day', 'week', 'month', 'lifetime'] as const;

export function define(command: Command, invocation: Invocation): void {
  defineList(command, invocation, {
    description: 'List the budgets and what is left of them',
    empty: 'There are no budgets.',
    fetch: async (client) => ({ items: await client.credits.budgets() }),
    name: (row) => row.budget_id,
    columns,
  });
  const create = command
    .command('create')
    .description('Limit what may be spent')
    .argument('<usd>', 'US dollars, such as 5 or 0.25', microUsd);
  choice(create, '--scope <scope>', {
    description: SCOPES.join(', '),
    values: SCOPES,
    byDefault: 'workspace',
  });
  choice(create, '--period <period>', {
    description: PERIODS.join(', '),
    values: PERIODS,
    byDefault: 'month',
  });
  create
    .option('--of <name>', 'which key, profile, actor or run; each of them when left out')
    .option('--throttle <duration>', 'from 80 % on, one new sandbox in so much time', durationSeconds)
    .option('--own-keys', 'also count sandboxes under provider keys of your own')
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
        printer.result(budget, () => printer.table(columns([budget], Date.now()), [budget]));
      },
    );
  command
    .command('delete')
    .description('Take a budget away')
    .argument('<budget>', 'its id')
    .action(async (id: string) => {
      await (await invocation.client()).credits.deleteBudget(id);
      const { printer } = invocation;
      printer.result({ budget_id: id, deleted: true }, () => printer.line(id));
    });
}
