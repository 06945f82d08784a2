import type { Command } from 'commander';
import type { Explanation } from '../../client/sandboxes.ts';
import type { RouteCandidate, RoutePlan } from '../../contract/route.ts';
import type { CreateFlags } from '../args/create-options.ts';
import { addCreateOptions, createRequestOf } from '../args/create-options.ts';
import type { Invocation } from '../invocation.ts';
import { moneyText } from '../output/amounts.ts';
import type { Printer } from '../output/printer.ts';
import type { Column } from '../output/table.ts';

type Attempt = Explanation['attempts'][number];

function reasonOf({ excluded_by, score }: RouteCandidate): string {
  if (excluded_by.length > 0) return excluded_by.map(({ code, detail }) => `${code}: ${detail}`).join('; ');
  return Object.entries(score)
    .map(([term, value]) => `${term} ${Number.isInteger(value) ? value : value.toPrecision(3)}`)
    .join(', ');
}

function candidateColumns(printer: Printer): Column<RouteCandidate>[] {
  const { green, dim } = printer.out;
  const paint = (text: string, row: RouteCandidate) =>
    row.rank === null ? dim(text) : row.rank === 0 ? green(text) : text;
  return [
    {
      title: 'RANK',
      align: 'right',
      value: (row) => (row.rank === null ? '-' : String(row.rank + 1)),
      paint,
    },
    { title: 'EXTENSION', value: (row) => row.extension, paint },
    { title: 'HOST', value: (row) => row.host ?? '-', paint },
    {
      title: 'PER HOUR',
      align: 'right',
      value: (row) => (row.quote ? moneyText(row.quote.micro_usd_per_hour) : '-'),
      paint,
    },
    { title: 'WHY', cuttable: true, value: reasonOf, paint },
  ];
}

const ATTEMPT_COLUMNS: readonly Column<Attempt>[] = [
  { title: 'ATTEMPT', align: 'right', value: (row) => String(row.n) },
  { title: 'EXTENSION', value: (row) => row.extension },
  { title: 'STATE', value: (row) => row.state },
  { title: 'CREATION', value: (row) => row.creation ?? '-' },
  {
    title: 'ERROR',
    cuttable: true,
    value: (row) => (row.error ? `${row.error.code}: ${row.error.detail}` : '-'),
  },
];

function printPlan(printer: Printer, plan: RoutePlan): void {
  printer.details([
    ['decision', plan.reason],
    ['strategy', plan.strategy],
    ['pinned', plan.pinned],
  ]);
  printer.line('');
  const ranked = [...plan.candidates].sort(
    (a, b) => (a.rank ?? Number.MAX_VALUE) - (b.rank ?? Number.MAX_VALUE),
  );
  printer.table(candidateColumns(printer), ranked);
}

export function define(command: Command, invocation: Invocation): void {
  command
    .command('explain')
    .description('Why a sandbox is where it is')
    .argument('<id>', 'the sandbox')
    .action(async (id: string) => {
      const { printer } = invocation;
      const explanation = await (await invocation.client()).sandboxes.route(id);
      printer.result(explanation, () => {
        printPlan(printer, explanation.plan);
        if (explanation.attempts.length === 0) return;
        printer.line('');
        printer.table(ATTEMPT_COLUMNS, explanation.attempts);
      });
    });
  addCreateOptions(
    command.command('resolve').description('Where a create would go, without creating anything'),
  ).action(async (flags: CreateFlags) => {
    const { printer } = invocation;
    const plan = await (await invocation.client()).routes.resolve(createRequestOf(flags));
    printer.result(plan, () => printPlan(printer, plan));
  });
}
