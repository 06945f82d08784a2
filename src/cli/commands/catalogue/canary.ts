import type { Command } from 'commander';
import type { Host } from '../../../contract/extensions/host.ts';
import { wholeNumber } from '../../args/numbers.ts';
import { EXIT } from '../../failures/exit-code.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import type { Trial } from '../../output/canary-view.ts';
import { outcomeColumns } from '../../output/canary-view.ts';
import { relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

interface Flags {
  readonly run?: boolean;
  readonly last: number;
}

interface HostTrial extends Trial {
  readonly host: string;
  readonly at: string;
}

function columns(now: number): Column<HostTrial>[] {
  return [
    { title: 'HOST', value: (row) => row.host },
    { title: 'EXTENSION', value: (row) => row.extension },
    { title: 'WHEN', value: (row) => relativeTime(row.at, now) },
    ...outcomeColumns<HostTrial>('GONE'),
  ];
}

function lastOf({ id: host, health }: Host): HostTrial[] {
  return health.canaries.map(({ checked_at: at, detail, failures, status: _, since: __, ...canary }) => ({
    host,
    at,
    ok: failures === 0,
    problem: failures === 0 ? null : detail,
    ...canary,
  }));
}

async function trials(invocation: Invocation, host: string | undefined, flags: Flags): Promise<HostTrial[]> {
  const { hosts } = await invocation.client();
  if (host === undefined && flags.run !== true) return (await hosts.list()).items.flatMap(lastOf);
  if (flags.run !== true) {
    const { items } = await hosts.samples(host as string, { kind: 'canary' });
    return items
      .slice(0, flags.last)
      .map(({ at, data }) => ({ ...data, host: host as string, at }) as HostTrial);
  }
  const all = (await hosts.list()).items.filter((one) => one.class === 'sandbox').map(({ id }) => id);
  const found: HostTrial[] = [];
  for (const id of host === undefined ? all : [host]) {
    const { items } = await invocation.progress(`Trying ${id}`).during(hosts.canary(id));
    found.push(...items.map((item) => ({ ...item, host: id })));
  }
  return found;
}

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('[host]', 'the series of this host; without it, the last of each')
    .option('--run', 'try it now; without a host, every one')
    .option('--last <number>', 'so many of a host', wholeNumber, 20)
    .action(async (host: string | undefined, flags: Flags) => {
      const { printer } = invocation;
      const items = await trials(invocation, host, flags);
      if (flags.run === true && items.some(({ ok }) => !ok)) invocation.exitCode = EXIT.backend;
      printer.result({ items }, () => {
        if (items.length > 0) printer.table(columns(Date.now()), items);
        else printer.note('No canary has run yet: sandboxer canary --run');
      });
    });
}
