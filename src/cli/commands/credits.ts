import type { Command } from 'commander';
import type { CreditBalance, CreditTransfer } from '../../client/credits.ts';
import { microUsd, wholeNumber } from '../args/numbers.ts';
import type { Invocation } from '../invocation.ts';
import { moneyText } from '../output/amounts.ts';
import { relativeTime } from '../output/relative-time.ts';
import type { Column } from '../output/table.ts';

function printBalance(invocation: Invocation, balance: CreditBalance): void {
  const { printer } = invocation;
  printer.result(balance, () =>
    printer.details([
      ['workspace', balance.workspace_id],
      ['available', moneyText(balance.available_micro_usd)],
      ['held', moneyText(balance.held_micro_usd)],
      ['spent', moneyText(balance.spent_micro_usd)],
    ]),
  );
}

function columns(now: number): Column<CreditTransfer>[] {
  return [
    { title: 'SEQ', align: 'right', value: (row) => String(row.seq) },
    { title: 'WHEN', value: (row) => relativeTime(row.at, now) },
    { title: 'KIND', value: (row) => row.kind },
    { title: 'AMOUNT', align: 'right', value: (row) => moneyText(row.amount_micro_usd) },
    { title: 'FROM', cuttable: true, value: (row) => row.debit },
    { title: 'TO', cuttable: true, value: (row) => row.credit },
    { title: 'SANDBOX', value: (row) => row.sandbox_id ?? '-' },
  ];
}

export function define(command: Command, invocation: Invocation): void {
  command
    .command('balance', { isDefault: true })
    .description('What there is, what is held, what was spent')
    .action(async () => printBalance(invocation, await (await invocation.client()).credits.balance()));
  command
    .command('grant')
    .description('Add credits')
    .argument('<usd>', 'US dollars, such as 5 or 0.25', microUsd)
    .option('--reference <text>', 'your own name for this grant; repeated, it is the same grant')
    .action(async (amount: number, flags: { readonly reference?: string }) => {
      const { reference } = flags;
      const client = await invocation.client();
      const request = { amount_micro_usd: amount, ...(reference === undefined ? {} : { reference }) };
      printBalance(invocation, await client.credits.grant(request));
    });
  command
    .command('history')
    .description('Every movement of money')
    .option('-n, --limit <number>', 'at most so many', wholeNumber, 100)
    .action(async ({ limit }: { readonly limit: number }) => {
      const { printer } = invocation;
      const page = await (await invocation.client()).credits.transfers({ limit }).page();
      printer.result(page, () => {
        if (page.items.length === 0) printer.note('There were no transfers.');
        else printer.table(columns(Date.now()), page.items);
      });
    });
}
