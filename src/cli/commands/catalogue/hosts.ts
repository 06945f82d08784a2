import type { Command } from 'commander';
import type { Host, HostSpecInput } from '../../../contract/extensions/host.ts';
import type { HostCostReport } from '../../../contract/money/credits.ts';
import { choice } from '../../args/choices.ts';
import { wholeNumber } from '../../args/numbers.ts';
import type { Pairs } from '../../args/pairs.ts';
import { list, pairs } from '../../args/pairs.ts';
import { EXIT } from '../../failures/exit-code.ts';
import { UsageError } from '../../failures/usage-error.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { defineList } from '../../invocation/listing.ts';
import { moneyText } from '../../output/amounts.ts';
import { canaryText } from '../../output/canary-view.ts';
import type { Printer } from '../../output/printer.ts';
import { relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

interface AddFlags {
  readonly hostKey: readonly string[];
  readonly identityFile?: string;
  readonly certificateFile?: string;
  readonly tunnel?: string;
  readonly warden?: boolean;
  readonly class?: 'sandbox' | 'production';
  readonly extension?: readonly string[];
  readonly label?: Pairs;
  readonly capacity?: number;
  readonly capacityCpu?: number;
  readonly capacityMemory?: number;
  readonly cost?: number;
}

function paint(printer: Printer, text: string, { health }: Host): string {
  const { green, red, yellow } = printer.out;
  return { healthy: green, unhealthy: red, unknown: yellow }[health.status](text);
}

function columns(_rows: readonly Host[], now: number, printer: Printer): Column<Host>[] {
  return [
    { title: 'HOST', value: (row) => row.id },
    { title: 'CLASS', spare: true, value: (row) => row.class },
    { title: 'STATE', value: (row) => row.state },
    { title: 'HEALTH', value: (row) => row.health.status, paint: (text, row) => paint(printer, text, row) },
    { title: 'SEEN', value: (row) => relativeTime(row.health.checked_at, now) },
    {
      title: 'SANDBOXES',
      align: 'right',
      value: (row) =>
        `${row.load.sandboxes}${row.capacity.sandboxes === null ? '' : `/${row.capacity.sandboxes}`}`,
    },
    { title: 'ADDRESS', spare: true, cuttable: true, value: addressOf },
    { title: 'DETAIL', cuttable: true, value: (row) => row.health.detail },
  ];
}

/** Details of a host, for `show`. */
function printHost(printer: Printer, host: Host): void {
  const { health, load, capacity } = host;
  const limit = (amount: number | null, unit: string) => (amount === null ? null : `${amount}${unit}`);
  printer.details([
    ['host', host.id],
    ['address', host.ssh === null ? null : addressOf(host)],
    ['class', host.class],
    ['state', host.state],
    ['health', `${health.status}: ${health.detail}`, (text) => paint(printer, text, host)],
    ['seen', relativeTime(health.checked_at, Date.now())],
    ['backends', host.extensions?.join(', ') || null],
    ['sandboxes', `${load.sandboxes}${capacity.sandboxes === null ? '' : ` of ${capacity.sandboxes}`}`],
    [
      'gives away',
      [limit(capacity.cpu, ' CPUs'), limit(capacity.memory_mb, ' MiB')].filter(Boolean).join(', ') || null,
    ],
    ...health.canaries.map((canary) => [`canary ${canary.extension}`, canaryText(canary)] as const),
    [
      'labels',
      Object.entries(host.labels)
        .map((pair) => pair.join('='))
        .join(' ') || null,
    ],
  ]);
}

const percent = (share: number | null) => (share === null ? '-' : `${Math.round(share * 100)} %`);
const money = (amount: number | null) => (amount === null ? '-' : moneyText(amount));

const COST_COLUMNS: Column<HostCostReport['items'][number]>[] = [
  { title: 'HOST', value: (row) => row.host },
  { title: 'AN HOUR', align: 'right', value: (row) => moneyText(row.cost_micro_usd_per_hour) },
  { title: 'COST', align: 'right', value: (row) => moneyText(row.total_micro_usd) },
  { title: 'USED', align: 'right', value: (row) => moneyText(row.used_micro_usd) },
  { title: 'IDLE', align: 'right', value: (row) => moneyText(row.idle_micro_usd) },
  { title: 'IN USE', align: 'right', value: (row) => percent(row.utilisation) },
  { title: 'ELSEWHERE', align: 'right', value: (row) => money(row.elsewhere_micro_usd) },
  { title: 'SAVED', align: 'right', value: (row) => money(row.saved_micro_usd) },
  { title: 'PAYS FROM', align: 'right', value: (row) => percent(row.break_even_utilisation) },
];

function addressOf({ ssh }: Host): string {
  if (ssh === null) return '-';
  return `${ssh.user === undefined ? '' : `${ssh.user}@`}${ssh.destination}${ssh.port === undefined ? '' : `:${ssh.port}`}`;
}

/** Parses `user@name:port`; an IPv6 address stands in brackets when a port follows. */
function addressParts(text: string): { user?: string; destination: string; port?: number } {
  const match = /^(?:([^@]+)@)?(?:\[([0-9a-fA-F:]+)\]|([^:]+|[0-9a-fA-F:]{3,}))(?::(\d{1,5}))?$/.exec(text);
  if (!match)
    throw new UsageError(`"${text}" is not an address.`, 'Write it as user@host or user@host:port.');
  const [, user, bracketed, plain = '', port] = match;
  return {
    destination: bracketed ?? plain,
    ...(user === undefined ? {} : { user }),
    ...(port === undefined ? {} : { port: wholeNumber(port) }),
  };
}

function specOf(id: string, address: string, flags: AddFlags): HostSpecInput {
  return {
    id,
    ssh: {
      ...addressParts(address),
      host_keys: [...flags.hostKey],
      ...(flags.identityFile === undefined ? {} : { identity_file: flags.identityFile }),
      ...(flags.certificateFile === undefined ? {} : { certificate_file: flags.certificateFile }),
      ...(flags.tunnel === undefined ? {} : { tunnel: flags.tunnel }),
      ...(flags.warden === true ? { identity: 'ops-warden' as const } : {}),
    },
    ...(flags.class === undefined ? {} : { class: flags.class }),
    ...(flags.extension === undefined ? {} : { extensions: [...flags.extension] }),
    ...(flags.label === undefined ? {} : { labels: flags.label }),
    capacity: {
      sandboxes: flags.capacity ?? null,
      cpu: flags.capacityCpu ?? null,
      memory_mb: flags.capacityMemory ?? null,
    },
    ...(flags.cost === undefined ? {} : { cost_micro_usd_per_hour: flags.cost }),
  };
}

function defineOne(
  command: Command,
  invocation: Invocation,
  name: 'drain' | 'undrain' | 'remove',
  description: string,
): void {
  command
    .command(name)
    .description(description)
    .argument('<host>', 'its name here')
    .action(async (id: string) => {
      const answer = await (await invocation.client()).hosts[name](id);
      invocation.printer.result(answer ?? { id }, () => invocation.printer.line(id));
    });
}

export function define(command: Command, invocation: Invocation): void {
  const show = (host: Host) => invocation.printer.result(host, () => printHost(invocation.printer, host));
  defineList(command, invocation, {
    description: 'List the hosts: the machine of the server, and those that are registered',
    empty: 'There are no hosts.',
    fetch: (client) => client.hosts.list(),
    name: (row) => row.id,
    columns,
  });
  const add = command
    .command('add')
    .description('Register a host, or change how it is registered')
    .argument('<host>', 'its name here')
    .argument('<address>', 'user@host or user@host:port')
    .requiredOption('--host-key <key>', 'its public key, as "ssh-ed25519 AAAA…"', list)
    .option('--identity-file <path>', 'private key on the server')
    .option('--certificate-file <path>', 'certificate on the server')
    .option('--tunnel <name>', 'reach it through this tunnel of ops-bridge')
    .option('--warden', 'log in with certificates of ops-warden');
  choice(add, '--class <class>', {
    description: 'sandbox, or production: never a target',
    values: ['sandbox', 'production'],
  });
  add
    .option('--extension <id>', 'serve only this backend', list)
    .option('-l, --label <key=value>', 'label', pairs('label'))
    .option('--capacity <number>', 'most sandboxes', wholeNumber)
    .option('--capacity-cpu <number>', 'CPUs to give away', wholeNumber)
    .option('--capacity-memory <mb>', 'memory to give away, in MiB', wholeNumber)
    .option('--cost <micro-usd>', 'cost of an hour of the host, in millionths of a US dollar', wholeNumber)
    .action(async (id: string, address: string, flags: AddFlags) => {
      show(await (await invocation.client()).hosts.add(specOf(id, address, flags)));
    });
  command
    .command('show')
    .description('Show one host')
    .argument('<host>', 'its name here')
    .action(async (id: string) => show(await (await invocation.client()).hosts.get(id)));
  command
    .command('probe')
    .description('Look at a host now')
    .argument('<host>', 'its name here')
    .action(async (id: string) => {
      const host = await (await invocation.client()).hosts.probe(id);
      show(host);
      if (host.health.failures > 0) invocation.exitCode = EXIT.backend;
    });
  command
    .command('cost')
    .description('Show the cost of the hosts, the used share, and the price of that share elsewhere')
    .option('--from <time>', 'from this date or time on (thirty days ago)')
    .option('--to <time>', 'before this date or time (now)')
    .action(async ({ from, to }: { readonly from?: string; readonly to?: string }) => {
      const { printer } = invocation;
      const span = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
      const report = await (await invocation.client()).credits.hosts(span);
      printer.result(report, () => {
        if (report.items.length === 0)
          printer.note('No hosts are registered: see sandboxer hosts add --help');
        else printer.table(COST_COLUMNS, report.items);
      });
    });
  defineOne(command, invocation, 'drain', 'Place nothing new on it');
  defineOne(command, invocation, 'undrain', 'Place sandboxes on it again');
  defineOne(command, invocation, 'remove', 'Forget a host that has no sandboxes');
}
