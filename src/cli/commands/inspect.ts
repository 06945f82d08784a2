import type { Command } from 'commander';
import { SandboxerApiError } from '../../client/api-error.ts';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import type { Host } from '../../contract/host.ts';
import type { Sandbox } from '../../contract/sandbox.ts';
import { CommandFailure } from '../command-failure.ts';
import { EXIT } from '../exit-code.ts';
import { defineInspectIsolation } from '../inspect-isolation.ts';
import type { Invocation } from '../invocation.ts';
import { relativeTime } from '../output/relative-time.ts';
import type { Column } from '../output/table.ts';

const HOST_COLUMNS: readonly Column<Host>[] = [
  { title: 'HOST', value: (row) => row.id },
  { title: 'CLASS', value: (row) => row.class },
  { title: 'STATE', value: (row) => row.state },
  { title: 'HEALTH', value: (row) => row.health },
  { title: 'EXTENSIONS', cuttable: true, value: (row) => row.extensions.join(',') },
  { title: 'ADDRESS', cuttable: true, value: (row) => row.address },
];

interface Load {
  readonly extension: string;
  readonly health: string;
  readonly sandboxes: number;
}

const LOAD_COLUMNS: readonly Column<Load>[] = [
  { title: 'EXTENSION', value: (row) => row.extension },
  { title: 'HEALTH', cuttable: true, value: (row) => row.health },
  { title: 'SANDBOXES', align: 'right', value: (row) => String(row.sandboxes) },
];

function staleColumns(now: number): Column<Sandbox>[] {
  return [
    { title: 'ID', value: (row) => row.sandbox_id },
    { title: 'STATE', value: (row) => row.state },
    { title: 'SINCE', value: (row) => relativeTime(row.state_since, now) },
    { title: 'EXTENSION', value: (row) => row.extension ?? '-' },
    { title: 'TRIES', align: 'right', value: (row) => String(row.teardown?.tries ?? 0) },
    {
      title: 'ERROR',
      cuttable: true,
      value: (row) => row.teardown?.last_error ?? row.failure?.detail ?? '-',
    },
  ];
}

/** `null` when the server has no hosts at all, as before it knows any routes for them. */
async function hostsOf(client: SandboxerClient): Promise<readonly Host[] | null> {
  try {
    return (await client.request<{ items: readonly Host[] }>({ method: 'GET', path: '/v1/hosts' })).items;
  } catch (error) {
    if (error instanceof SandboxerApiError && error.status === 404) return null;
    throw error;
  }
}

async function loadOf(client: SandboxerClient): Promise<Load[]> {
  const { items } = await client.extensions.list();
  const counts = new Map<string | null, number>();
  const states = ['requested', 'provisioning', 'ready', 'active', 'paused', 'destroying'] as const;
  for await (const { extension } of client.sandboxes.list({ state: states, limit: 500 })) {
    counts.set(extension, (counts.get(extension) ?? 0) + 1);
  }
  return items.map(({ id, health }) => ({
    extension: id,
    health: `${health.status}: ${health.detail}`,
    sandboxes: counts.get(id) ?? 0,
  }));
}

async function inspectHost(invocation: Invocation, name: string | undefined): Promise<void> {
  const { printer } = invocation;
  const client = await invocation.client();
  const hosts = await hostsOf(client);
  if (name !== undefined && !hosts?.some((host) => host.id === name)) {
    throw new CommandFailure(
      hosts === null ? 'Hosts are not configured on this server.' : `There is no host "${name}".`,
      {
        code: hosts === null ? 'SBX_CLI_NOT_CONFIGURED' : 'SBX_CLI_NO_HOST',
        remedy:
          hosts === null
            ? 'Its own machine is shown by: sandboxer inspect host'
            : 'See sandboxer inspect host.',
        exitCode: hosts === null ? EXIT.refused : EXIT.notFound,
      },
    );
  }
  const shown = name === undefined ? hosts : (hosts?.filter((host) => host.id === name) ?? null);
  const extensions = await loadOf(client);
  printer.result({ hosts: shown, extensions }, () => {
    if (shown === null || shown.length === 0)
      printer.note('No hosts are configured; the backends of the server itself:');
    else printer.table(HOST_COLUMNS, shown);
    printer.table(LOAD_COLUMNS, extensions);
  });
}

async function inspectStale(invocation: Invocation): Promise<void> {
  const { printer } = invocation;
  const client = await invocation.client();
  const found = await client.sandboxes.list({ state: ['destroying', 'expired', 'failed'], limit: 500 }).all();
  // A list shows no teardown; it is worth one more look at each of these few.
  const items = await Promise.all(found.map(({ sandbox_id }) => client.sandboxes.get(sandbox_id)));
  printer.result({ items }, () => {
    if (items.length === 0)
      printer.note('Nothing was left behind. What nobody owns is removed by the server itself.');
    else printer.table(staleColumns(Date.now()), items);
  });
}

export function define(command: Command, invocation: Invocation): void {
  command
    .command('host')
    .description('Hosts, and what runs there')
    .argument('[name]', 'only this host')
    .action((name: string | undefined) => inspectHost(invocation, name));
  command
    .command('stale')
    .description('What is being removed, failed or expired')
    .action(() => inspectStale(invocation));
  defineInspectIsolation(command, invocation);
}
