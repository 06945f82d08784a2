import type { Command } from 'commander';
import type { RouteCandidate } from '../../../contract/routing/route.ts';
import type { CreateFlags } from '../../args/create-options.ts';
import { addCreateOptions, createRequestOf } from '../../args/create-options.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { moneyText } from '../../output/amounts.ts';
import { useText } from '../../output/expected-use.ts';
import { relativeTime, waitText } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

const COLUMNS: readonly Column<RouteCandidate>[] = [
  { title: 'EXTENSION', value: (row) => row.extension },
  { title: 'PER HOUR', align: 'right', value: (row) => moneyText(row.quote?.micro_usd_per_hour ?? 0) },
  { title: 'EXPECTED', align: 'right', value: (row) => moneyText(row.quote?.expected_charge_micro_usd ?? 0) },
  { title: 'AT MOST', align: 'right', value: (row) => moneyText(row.quote?.max_charge_micro_usd ?? 0) },
  {
    title: 'READY IN',
    align: 'right',
    value: ({ standing }) => (standing ? waitText(standing.wait_ms) : '-'),
  },
  { title: 'PRICE', cuttable: true, value: (row) => row.quote?.price_version ?? '-' },
];

export function define(command: Command, invocation: Invocation): void {
  addCreateOptions(command).action(async (flags: CreateFlags) => {
    const { printer } = invocation;
    const quote = await (await invocation.client()).routes.quote(createRequestOf(flags));
    printer.result(quote, () => {
      printer.details([
        ['quote', quote.quote_id],
        ['profile', quote.profile],
        ['expected', moneyText(quote.expected_charge_micro_usd)],
        ['expected use', quote.plan.expected ? useText(quote.plan.expected) : null],
        ['at most', moneyText(quote.max_charge_micro_usd)],
        ['expires', relativeTime(quote.expires_at, Date.now())],
      ]);
      printer.line('');
      printer.table(
        COLUMNS,
        quote.plan.candidates.filter(({ rank }) => rank !== null),
      );
    });
  });
}
