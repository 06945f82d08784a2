import type { Command } from 'commander';
import type { HostTelemetry } from '../../../contract/extensions/host.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { canaryText } from '../../output/canary-view.ts';
import { relativeTime, waitText } from '../../output/relative-time.ts';
import { staleColumns, tellUnseen } from '../../output/stale-view.ts';
import type { Column } from '../../output/table.ts';
import { defineInspectIsolation } from './inspect-isolation.ts';

function megabytes(free: number | null, total: number | null): string {
  return free === null || total === null ? '-' : `${free} of ${total} MiB free`;
}

function telemetryRows(seen: HostTelemetry): (readonly [string, string])[] {
  const { ours, other_owner, not_ours } = seen.containers;
  const engines = Object.entries(seen.engines).map(([name, version]) => `${name} ${version}`);
  return [
    ['host', seen.host],
    ['machine', [seen.kernel, seen.machine].filter(Boolean).join(', ') || '-'],
    ['cpu', `${seen.cpus ?? '-'}, load ${seen.load.join(' ') || '-'}`],
    ['memory', megabytes(seen.memory_available_mb, seen.memory_total_mb)],
    ['disk', megabytes(seen.disk_free_mb, seen.disk_total_mb)],
    ['engines', engines.join(', ') || '-'],
    ['isolation', seen.isolation.join(', ') || '-'],
    ['containers', `${ours} ours, ${other_owner} of another owner, ${not_ours} not ours`],
    ['sandboxes', String(seen.sandboxes)],
    ...seen.canaries.map((canary) => [`canary ${canary.extension}`, canaryText(canary)] as const),
    ['answered in', seen.latency_ms === null ? '-' : waitText(seen.latency_ms)],
  ];
}

const OURS: readonly Column<HostTelemetry['ours'][number]>[] = [
  { title: 'SANDBOX', value: (row) => row.sandbox_id },
  { title: 'WORKSPACE', value: (row) => row.workspace },
  { title: 'EXTENSION', value: (row) => row.extension },
  { title: 'STATE', value: (row) => row.state },
  { title: 'SINCE', value: (row) => relativeTime(row.since, Date.now()) },
];

const WHOSE = { ours: 'ours', other_owner: 'another owner', not_ours: 'not ours' } as const;
const RUNNING: readonly Column<HostTelemetry['running'][number]>[] = [
  { title: 'CONTAINER', value: (row) => row.name },
  { title: 'WHOSE', value: (row) => WHOSE[row.whose] },
  { title: 'STATE', value: (row) => row.state },
  { title: 'IMAGE', cuttable: true, value: (row) => row.image },
];

async function inspectHost(invocation: Invocation, name: string): Promise<void> {
  const { printer } = invocation;
  const seen = await (await invocation.client()).hosts.telemetry(name);
  printer.result(seen, () => {
    printer.details(telemetryRows(seen));
    if (seen.ours.length > 0) printer.line('');
    if (seen.ours.length > 0) printer.table(OURS, seen.ours);
    if (seen.running.length > 0) printer.line('');
    if (seen.running.length > 0) printer.table(RUNNING, seen.running);
  });
}

async function inspectStale(invocation: Invocation): Promise<void> {
  const { printer } = invocation;
  const found = await (await invocation.client()).stale.inspect();
  printer.result(found, () => {
    if (found.items.length === 0) printer.note('Nothing was left behind.');
    else printer.table(staleColumns(), found.items);
    tellUnseen(printer, found.unseen);
  });
}

export function define(command: Command, invocation: Invocation): void {
  command
    .command('host')
    .description('Show the present state of a host: load, memory, disk, engines, sandboxes')
    .argument('[name]', 'the host; without it, the machine of the server', 'local')
    .action((name: string) => inspectHost(invocation, name));
  command
    .command('stale')
    .description('List leftovers: expired, failed, half-destroyed, orphaned, and of unknown owners')
    .action(() => inspectStale(invocation));
  defineInspectIsolation(command, invocation);
}
