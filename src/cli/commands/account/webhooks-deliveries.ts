import type { Command } from 'commander';
import type { Delivery } from '../../../contract/events/webhook.ts';
import { choice } from '../../args/choices.ts';
import { wholeNumber } from '../../args/numbers.ts';
import { UsageError } from '../../failures/usage-error.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { printList } from '../../invocation/listing.ts';
import { relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

function columns(_rows: readonly Delivery[], now: number): Column<Delivery>[] {
  return [
    { title: 'SEQ', align: 'right', value: (row) => String(row.seq) },
    { title: 'STATE', value: (row) => row.state },
    { title: 'EVENT', cuttable: true, value: (row) => row.type ?? 'no longer kept' },
    { title: 'SANDBOX', value: (row) => row.sandbox_id ?? '-' },
    { title: 'TRIES', align: 'right', value: (row) => String(row.tries) },
    { title: 'NEXT TRY', spare: true, value: (row) => relativeTime(row.next_try_at, now) },
    { title: 'ERROR', cuttable: true, value: (row) => row.last_error },
  ];
}

interface ListFlags {
  readonly state?: Delivery['state'];
  readonly limit: number;
}

interface ReplayFlags {
  readonly from?: number;
  readonly only?: number;
}

/** Commands for events that a webhook did not take, and for sending them again. */
export function defineDeliveries(command: Command, invocation: Invocation): void {
  const deliveries = command
    .command('deliveries')
    .description('Show the events that it did not take: what is tried again, and what was given up')
    .argument('<webhook>', 'its id')
    .option('-n, --limit <number>', 'at most so many', wholeNumber, 100);
  choice(deliveries, '--state <state>', {
    description: 'only waiting, or dead: given up',
    values: ['waiting', 'dead'],
  }).action(async (id: string, { state, limit }: ListFlags) => {
    const { webhooks } = await invocation.client();
    const found = await webhooks.deliveries(id, { limit, ...(state === undefined ? {} : { state }) });
    printList(invocation.printer, found, {
      empty: 'It took everything.',
      name: (row) => String(row.seq),
      columns,
    });
  });
  command
    .command('replay')
    .description('Tell it again: of everything that is kept from a number on, or of one event')
    .argument('<webhook>', 'its id')
    .option('--from <seq>', 'everything from this number on', wholeNumber)
    .option('--only <seq>', 'this event, whose delivery failed', wholeNumber)
    .action(async (id: string, { from, only }: ReplayFlags) => {
      if ((from === undefined) === (only === undefined))
        throw new UsageError('Say from where to replay.', 'Give either --from <seq> or --only <seq>.');
      const { printer } = invocation;
      const { webhooks } = await invocation.client();
      const answer =
        only === undefined
          ? await webhooks.replay(id, from as number)
          : await webhooks.replayDelivery(id, only);
      printer.result(answer, () => {
        printer.line(id);
        printer.note(only === undefined ? `told again from ${from} on` : `told again of ${only}`);
      });
    });
}
