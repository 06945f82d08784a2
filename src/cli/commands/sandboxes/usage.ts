import type { Command } from 'commander';
import type { Meter } from '../../../contract/money/money.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { printList } from '../../invocation/listing.ts';
import { moneyText } from '../../output/amounts.ts';
import { relativeTime, shortDuration } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

function columns(_rows: readonly Meter[], now: number): Column<Meter>[] {
  return [
    { title: 'GENERATION', align: 'right', value: (row) => String(row.generation) },
    { title: 'EXTENSION', cuttable: true, value: (row) => row.extension },
    { title: 'OPENED', value: (row) => relativeTime(row.opened_at, now) },
    { title: 'CLOSED', value: (row) => relativeTime(row.closed_at, now) },
    { title: 'BILLED', align: 'right', value: (row) => shortDuration(row.billed_seconds) },
    { title: 'CHARGED', align: 'right', value: (row) => moneyText(row.charged_micro_usd) },
    { title: 'ESTIMATE', align: 'right', value: (row) => moneyText(row.estimate_micro_usd) },
  ];
}

export function define(command: Command, invocation: Invocation): void {
  command.argument('<id>', 'the sandbox').action(async (id: string) => {
    const usage = await (await invocation.client()).sandboxes.usage(id);
    printList(invocation.printer, usage, {
      empty: 'Nothing was metered.',
      name: (row) => String(row.generation),
      columns,
    });
  });
}
