import type { Command } from 'commander';
import type { EventSinkEntry } from '../../../contract/events/webhook.ts';
import { wholeNumber } from '../../args/numbers.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { defineList } from '../../invocation/listing.ts';
import { relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

function columns(_rows: readonly EventSinkEntry[], now: number): Column<EventSinkEntry>[] {
  return [
    { title: 'RECEIVER', value: (row) => row.sink_id },
    { title: 'STATUS', value: (row) => row.status.replace('_', ' ') },
    { title: 'LAG', align: 'right', value: (row) => String(row.lag) },
    { title: 'PARKED', align: 'right', value: (row) => String(row.parked) },
    { title: 'DEAD', align: 'right', value: (row) => String(row.dead) },
    { title: 'TAKEN', spare: true, value: (row) => relativeTime(row.last_taken_at, now) },
    { title: 'ENDPOINT', spare: true, cuttable: true, value: (row) => row.endpoint ?? '-' },
    { title: 'ERROR', cuttable: true, value: (row) => row.last_error ?? '-' },
  ];
}

export function define(command: Command, invocation: Invocation): void {
  defineList(command, invocation, {
    description: 'List the receivers of events and their progress',
    empty: 'No receiver of events yet: see sandboxer webhooks create --help.',
    fetch: (client) => client.sinks.list(),
    name: (row) => row.sink_id,
    columns,
  });
  command
    .command('replay')
    .description('Tell a receiver again of everything that is kept, from a number on')
    .argument('<receiver>', 'such as state-hub; a webhook has a replay of its own')
    .requiredOption('--from <seq>', 'the number of the first event', wholeNumber)
    .action(async (id: string, flags: { readonly from: number }) => {
      const { printer } = invocation;
      const started = await (await invocation.client()).sinks.replay(id, flags.from);
      printer.result(started, () => printer.note(`${id} is told again from ${started.from} on.`));
    });
}
