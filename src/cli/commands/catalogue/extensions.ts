import type { Command } from 'commander';
import type { Backend } from '../../../client/resources/extensions.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { defineList } from '../../invocation/listing.ts';
import type { Printer } from '../../output/printer.ts';
import { relativeTime, waitText } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

function paintHealth(printer: Printer, text: string, status: string): string {
  const { green, red, yellow } = printer.out;
  return status === 'healthy' ? green(text) : status === 'unhealthy' ? red(text) : yellow(text);
}

function columns(_rows: readonly Backend[], _now: number, printer: Printer): Column<Backend>[] {
  return [
    { title: 'EXTENSION', value: (row) => row.id },
    {
      title: 'HEALTH',
      value: (row) => row.health.status,
      paint: (text, row) => paintHealth(printer, text, row.health.status),
    },
    { title: 'HOSTING', spare: true, value: (row) => row.capabilities.hosting },
    { title: 'ISOLATION', value: (row) => row.capabilities.isolation.join(',') },
    { title: 'READY IN', align: 'right', value: ({ standing }) => waitText(standing.wait_ms) },
    { title: 'SUCCEEDS', align: 'right', value: ({ standing }) => successText(standing) },
    { title: 'BREAKER', spare: true, value: ({ standing }) => standing.breaker.replace('_', ' ') },
    { title: 'DETAIL', cuttable: true, value: (row) => row.health.detail },
  ];
}

function successText({ samples, success }: Backend['standing']): string {
  return samples === 0 ? '-' : `${Math.round(success * 100)}%`;
}

/** Describes the health of a backend from our own attempts. */
function standingRows({ standing }: Backend): [string, string | null][] {
  const { p50_ms: half, p95_ms: late } = standing;
  const source = standing.measured ? 'measured' : 'by the registry';
  const known = half !== undefined && late !== undefined;
  return [
    ['ready in', `${waitText(standing.wait_ms)} (${source})`],
    ['spread', known ? `half within ${waitText(half)}, 95% within ${waitText(late)}` : null],
    ['succeeds', standing.samples === 0 ? null : `${successText(standing)} of ${standing.samples} attempts`],
    ['breaker', standing.breaker.replace('_', ' ')],
    ['key', standing.key_refused ? 'refused by the backend lately' : null],
    ['in flight', String(standing.in_flight)],
  ];
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.join(', ');
  return value === null ? '-' : String(value);
}

function show(printer: Printer, backend: Backend): void {
  const { health, capabilities } = backend;
  printer.details([
    ['id', backend.id],
    ['title', backend.title],
    ['health', `${health.status}: ${health.detail}`, (text) => paintHealth(printer, text, health.status)],
    ['checked', health.checked_at && relativeTime(health.checked_at, Date.now())],
    ...health.checks.map(
      ({ name, ok, detail, fix }) =>
        [name, `${ok ? 'ok' : 'failed'}: ${detail}${fix ? `\nfix: ${fix}` : ''}`] as const,
    ),
    ...standingRows(backend),
    ...Object.entries(capabilities).map(([name, value]) => [name, valueText(value)] as const),
  ]);
}

export function define(command: Command, invocation: Invocation): void {
  defineList(command, invocation, {
    description: 'List the backends',
    empty: 'No backend is enabled: see the configuration reference.',
    fetch: (client) => client.extensions.list(),
    name: (row) => row.id,
    columns,
  });
  command
    .command('show')
    .description('Show one backend with its capabilities and checks')
    .argument('<extension>', 'such as ext.local')
    .action(async (id: string) => {
      const { printer } = invocation;
      const backend = await (await invocation.client()).extensions.get(id);
      printer.result(backend, () => show(printer, backend));
    });
}
