import type { Command } from 'commander';
import type { CreditBalance, CreditTransfer, Span } from '../../../client/resources/credits.ts';
import type {
  ExportFormat,
  LedgerAudit,
  ReconcileReport,
  ReconcileRequest,
  UsageBy,
  UsageReport,
} from '../../../contract/money/credits.ts';
import { choice } from '../../args/choices.ts';
import { readInputFile } from '../../args/input-file.ts';
import { durationSeconds, microUsd, wholeNumber } from '../../args/numbers.ts';
import { EXIT } from '../../failures/exit-code.ts';
import { UsageError } from '../../failures/usage-error.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { printList } from '../../invocation/listing.ts';
import { moneyText } from '../../output/amounts.ts';
import type { Printer } from '../../output/printer.ts';
import { relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';
import { defineLimits } from './credits-limits.ts';

function printBalance(invocation: Invocation, balance: CreditBalance): void {
  const { printer } = invocation;
  printer.result(balance, () =>
    printer.details([
      ['workspace', balance.workspace_id],
      ['available', moneyText(balance.available_micro_usd)],
      ['held', moneyText(balance.held_micro_usd)],
      ['spent', moneyText(balance.spent_micro_usd)],
      ...(balance.expires_at === null
        ? []
        : [
            ['ending', `${moneyText(balance.expiring_micro_usd)} at ${balance.expires_at}`] as [
              string,
              string,
            ],
          ]),
    ]),
  );
}

function columns(_rows: readonly CreditTransfer[], now: number): Column<CreditTransfer>[] {
  return [
    { title: 'SEQ', align: 'right', value: (row) => String(row.seq) },
    { title: 'WHEN', value: (row) => relativeTime(row.at, now) },
    { title: 'KIND', value: (row) => row.kind },
    { title: 'AMOUNT', align: 'right', value: (row) => moneyText(row.amount_micro_usd) },
    { title: 'FROM', spare: true, cuttable: true, value: (row) => row.debit },
    { title: 'TO', spare: true, cuttable: true, value: (row) => row.credit },
    { title: 'SANDBOX', value: (row) => row.sandbox_id ?? '-' },
  ];
}

const USAGE_COLUMNS: Column<UsageReport['items'][number]>[] = [
  { title: 'NAME', cuttable: true, value: (row) => row.name },
  { title: 'CHARGES', align: 'right', value: (row) => String(row.charges) },
  { title: 'AMOUNT', align: 'right', value: (row) => moneyText(row.amount_micro_usd) },
];

const FINDING_COLUMNS: Column<LedgerAudit['findings'][number]>[] = [
  { title: 'INVARIANT', value: (row) => row.invariant },
  { title: 'WHAT', cuttable: true, value: (row) => row.subject },
  { title: 'DETAIL', cuttable: true, value: (row) => row.detail },
];

const DRIFT_COLUMNS: Column<ReconcileReport['items'][number]>[] = [
  { title: 'KIND', value: (row) => row.kind },
  { title: 'EXTENSION', value: (row) => row.extension },
  { title: 'SANDBOX', value: (row) => row.sandbox },
  { title: 'OURS', align: 'right', value: (row) => amountOrDash(row.ours_micro_usd) },
  { title: 'THEIRS', align: 'right', value: (row) => amountOrDash(row.theirs_micro_usd) },
  { title: 'DETAIL', cuttable: true, value: (row) => row.detail },
];

function amountOrDash(amount: number | null): string {
  return amount === null ? '-' : moneyText(amount);
}

const BY = ['day', 'profile', 'extension', 'actor', 'key', 'run', 'sandbox'] as const;

/** Flags of the command include those of every command. */
function spanOf({ from, to }: Span): Span {
  return { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
}

function withSpan(command: Command): Command {
  return command
    .option('--from <time>', 'from this date or time on (thirty days ago)')
    .option('--to <time>', 'before this date or time (now)');
}

async function printUsage(invocation: Invocation, by: UsageBy, span: Span, most?: number): Promise<void> {
  const { printer } = invocation;
  const report = await (await invocation.client()).credits.usage({ ...span, by });
  const items = most === undefined ? report.items : report.items.slice(0, most);
  printer.result({ ...report, items }, () => {
    if (items.length === 0) printer.note('Nothing was charged.');
    else printer.table(USAGE_COLUMNS, [...items, totalRow(report)]);
    if (report.own_machines) printOwnMachines(printer, report.own_machines);
  });
}

function printOwnMachines(printer: Printer, own: NonNullable<UsageReport['own_machines']>): void {
  const percent = (share: number) => `${Math.round(share * 100)}%`;
  const pays = own.break_even_utilisation;
  printer.line('');
  printer.line(printer.out.dim('Machines of your own, for all workspaces'));
  printer.details([
    ['  sandboxes', String(own.sandboxes)],
    ['  cost', `${moneyText(own.total_micro_usd)}, ${percent(own.utilisation)} in use`],
    ['  elsewhere', moneyText(own.elsewhere_micro_usd)],
    ['  saved', moneyText(own.saved_micro_usd)],
    ['  pays from', pays === null ? null : pays > 1 ? 'never' : `${percent(pays)} of use`],
  ]);
}

function totalRow(report: UsageReport): UsageReport['items'][number] {
  const charges = report.items.reduce((sum, item) => sum + item.charges, 0);
  return { name: 'total', charges, amount_micro_usd: report.total_micro_usd };
}

function defineReports(command: Command, invocation: Invocation): void {
  const usage = withSpan(command.command('usage').description('Show the charges, added up'));
  choice(usage, '--by <what>', { description: `by ${BY.join(', ')}`, values: BY, byDefault: 'day' }).action(
    (flags: Span & { readonly by: UsageBy }) => printUsage(invocation, flags.by, spanOf(flags)),
  );
  const top = withSpan(command.command('top').description('List the highest costs'));
  choice(top, '--by <what>', {
    description: `by ${BY.slice(1).join(', ')}`,
    values: BY,
    byDefault: 'sandbox',
  })
    .option('-n, --limit <number>', 'at most so many', wholeNumber, 10)
    .action((flags: Span & { readonly by: UsageBy; readonly limit: number }) =>
      printUsage(invocation, flags.by, spanOf(flags), flags.limit),
    );
  const exported = withSpan(
    command.command('export').description('Write every charge, as CloudEvents JSON lines or FOCUS 1.2 CSV'),
  );
  choice(exported, '--format <format>', {
    description: 'cloudevents or focus',
    values: ['cloudevents', 'focus'],
    byDefault: 'cloudevents',
  }).action(async (flags: Span & { readonly format: ExportFormat }) => {
    const client = await invocation.client();
    const { printer } = invocation;
    for await (const page of client.credits.export({ ...spanOf(flags), format: flags.format })) {
      printer.result(page, () => {
        if (page.content !== '') printer.line(page.content.trimEnd());
      });
    }
  });
}

async function readInvoice(file: string): Promise<ReconcileRequest['invoice']> {
  const text = await readInputFile(file);
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${file} is not JSON.`, 'Write a list of { extension, sandbox, amount_micro_usd }.');
  }
}

function defineChecks(command: Command, invocation: Invocation): void {
  command
    .command('audit')
    .description('Add the ledger up again and list every disagreement')
    .action(async () => {
      const { printer } = invocation;
      const audit = await (await invocation.client()).credits.audit();
      printer.result(audit, () => {
        if (audit.findings.length > 0) printer.table(FINDING_COLUMNS, audit.findings);
        printer.details([
          ['transfers', String(audit.transfers)],
          ['accounts', String(audit.accounts)],
          ['open holds', String(audit.open_holds)],
          ['open meters', String(audit.open_meters)],
          ['findings', String(audit.findings.length)],
          ['head', audit.head || '-'],
        ]);
      });
      if (audit.findings.length > 0) invocation.exitCode = EXIT.failed;
    });
  command
    .command('reconcile')
    .description('Compare our meters with living sandboxes, with usage at backends, and with their bills')
    .option('--invoice <file>', 'a JSON list of { extension, sandbox, amount_micro_usd }')
    .option('--from <time>', 'the invoice is of the time from here …')
    .option('--to <time>', '… to here: sandboxes of that span that it leaves out are listed')
    .option('--apply', 'write corrections')
    .action(async (flags: Span & { readonly invoice?: string; readonly apply?: boolean }) => {
      const invoice = flags.invoice === undefined ? [] : await readInvoice(flags.invoice);
      const client = await invocation.client();
      const { printer } = invocation;
      const report = await client.credits.reconcile({
        ...spanOf(flags),
        invoice,
        apply: flags.apply === true,
      });
      printer.result(report, () => {
        if (report.items.length === 0) printer.note('Everything agrees.');
        else printer.table(DRIFT_COLUMNS, report.items);
      });
    });
}

export function define(command: Command, invocation: Invocation): void {
  command
    .command('balance', { isDefault: true })
    .description('Show the balance, holds and spending')
    .action(async () => printBalance(invocation, await (await invocation.client()).credits.balance()));
  command
    .command('grant')
    .description('Add credits')
    .argument('<usd>', 'US dollars, such as 5 or 0.25', microUsd)
    .option('--reference <text>', 'your own name for this grant; repeated, it is the same grant')
    .option('--expires <duration>', 'take back what is unspent then, such as 30d', durationSeconds)
    .option('--paid', 'record it as a top-up that was paid for')
    .action(
      async (
        amount: number,
        flags: { readonly reference?: string; readonly expires?: number; readonly paid?: boolean },
      ) => {
        const { reference, expires, paid } = flags;
        const client = await invocation.client();
        const request = {
          amount_micro_usd: amount,
          kind: paid ? ('top_up' as const) : ('grant' as const),
          ...(reference === undefined ? {} : { reference }),
          ...(expires === undefined ? {} : { expires_in: expires }),
        };
        printBalance(invocation, await client.credits.grant(request));
      },
    );
  command
    .command('history')
    .description('Every movement of money, the newest first')
    .option('-n, --limit <number>', 'at most so many', wholeNumber, 100)
    .action(async ({ limit }: { readonly limit: number }) => {
      const page = await (await invocation.client()).credits.transfers({ limit, order: 'newest' }).page();
      printList(invocation.printer, page, {
        empty: 'There were no transfers.',
        name: (row) => String(row.seq),
        columns,
      });
    });
  defineReports(command, invocation);
  defineChecks(command, invocation);
  defineLimits(command, invocation);
}
