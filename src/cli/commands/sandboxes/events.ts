import type { Command } from 'commander';
import type { CloudEvent, EventType } from '../../../contract/events/event.ts';
import { choice } from '../../args/choices.ts';
import { wholeNumber } from '../../args/numbers.ts';
import { list } from '../../args/pairs.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { plainText } from '../../output/plain-text.ts';
import type { Printer } from '../../output/printer.ts';
import type { Column } from '../../output/table.ts';

interface Flags {
  readonly follow?: boolean;
  readonly type?: readonly EventType[];
  readonly after?: number;
  readonly last: number;
  readonly order: 'asc' | 'desc';
}

const PAGE = 1000;

function detailsOf(event: CloudEvent): string {
  const { actor, consumer, details } = event.data;
  const who = [actor, consumer.harness].filter(Boolean).join('/');
  const facts = Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return [who, ...facts].join(' ');
}

function columns(printer: Printer): Column<CloudEvent>[] {
  const { cyan } = printer.out;
  return [
    { title: 'SEQ', align: 'right', value: (row) => String(row.data.seq) },
    { title: 'TIME', value: (row) => row.time.replace('T', ' ').replace(/\.\d+Z$/, 'Z') },
    { title: 'EVENT', value: (row) => row.type, paint: (text) => cyan(text) },
    { title: 'SANDBOX', value: (row) => row.data.sandbox_id ?? '-' },
    { title: 'DETAILS', cuttable: true, value: detailsOf },
  ];
}

function printOne(printer: Printer, event: CloudEvent): void {
  const { dim, cyan } = printer.out;
  const { seq, sandbox_id } = event.data;
  const text = `${dim(`${seq} ${event.time}`)} ${cyan(event.type)} ${plainText(sandbox_id ?? '')} ${plainText(detailsOf(event))}`;
  printer.line(text.trimEnd());
}

async function follow(invocation: Invocation, sandbox: string | undefined, flags: Flags): Promise<void> {
  const { printer } = invocation;
  const client = await invocation.client();
  const after = flags.after === undefined ? undefined : String(flags.after);
  for await (const event of client.events.follow({ sandbox, type: flags.type, after })) {
    if (printer.json) printer.item(event);
    else printOne(printer, event);
  }
}

/** Prints the latest events, in the requested order. */
async function latest(
  invocation: Invocation,
  sandbox: string | undefined,
  flags: Flags,
): Promise<CloudEvent[]> {
  const client = await invocation.client();
  const { type, after, last } = flags;
  const query = { sandbox, type, after, order: 'desc', limit: Math.min(last, PAGE) } as const;
  const newestFirst = await client.events.list(query).all(last);
  return flags.order === 'desc' ? newestFirst : newestFirst.reverse();
}

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('[id]', 'only of this sandbox')
    .option('-f, --follow', 'as they happen')
    .option('--type <type>', 'only of this type, such as sandbox.ready', list)
    .option('--after <seq>', 'only what came after this number', wholeNumber)
    .option('-n, --last <number>', 'only the latest so many', wholeNumber, 50);
  choice(command, '--order <order>', {
    description: 'oldest (asc) or newest (desc) first',
    values: ['asc', 'desc'],
    byDefault: 'asc',
  }).action(async (sandbox: string | undefined, flags: Flags) => {
    const { printer } = invocation;
    if (flags.follow) return follow(invocation, sandbox, flags);
    const items = await latest(invocation, sandbox, flags);
    printer.result({ items, next_cursor: null }, () => {
      if (items.length === 0) printer.note('There are no events.');
      else printer.table(columns(printer), items);
    });
  });
}
