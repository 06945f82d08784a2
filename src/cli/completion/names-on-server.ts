import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import { NOT_DESTROYED } from '../commands/sandboxes/list.ts';
import type { LineSoFar } from './line-so-far.ts';

export interface Candidate {
  readonly value: string;
  readonly description: string;
}

const MOST = 100;

const named = <T>(rows: readonly T[], value: (row: T) => string, description: (row: T) => string) =>
  rows.map((row) => ({ value: value(row), description: description(row) }));

type LookUp = (client: SandboxerClient, line: LineSoFar) => Promise<Candidate[]>;

const sandboxes: LookUp = async (client) => {
  const page = await client.sandboxes.list({ state: NOT_DESTROYED, limit: MOST }).page();
  return named(
    page.items,
    (row) => row.sandbox_id,
    (row) => `${row.state}, ${row.profile.replace(/^profile\./, '')}`,
  );
};

const places: LookUp = async (client, line) =>
  (await sandboxes(client, line)).map(({ value, description }) => ({ value: `${value}:`, description }));

const apiKeys: LookUp = async (client) =>
  named(
    (await client.keys.list()).items.filter((row) => row.revoked_at === null),
    (row) => row.key_id,
    (row) => row.name,
  );

const providerKeys: LookUp = async (client) =>
  named(
    (await client.providerKeys.list()).items,
    (row) => row.provider_key_id,
    (row) => `${row.extension} ${row.label}`,
  );

/** Lookups of names on the server, by the name of an argument or of an option's value. */
const BY_NAME: Readonly<Record<string, LookUp>> = {
  id: sandboxes,
  sandbox: sandboxes,
  from: places,
  to: places,
  snapshot: async (client) =>
    named(
      (await client.snapshots.list({ limit: MOST }).page()).items,
      (row) => row.snapshot_id,
      (row) => row.name ?? row.sandbox_id,
    ),
  upload: async (client) =>
    named(
      (await client.uploads.list({ limit: MOST }).page()).items,
      (row) => row.upload_id,
      (row) => `${row.entries} entries`,
    ),
  profile: async (client) =>
    named(
      (await client.profiles.list()).items.map(
        ({ profile }) => profile as { id: string; description?: string },
      ),
      (row) => row.id.replace(/^profile\./, ''),
      (row) => row.description ?? '',
    ),
  extension: async (client) =>
    named(
      (await client.extensions.list()).items,
      (row) => row.id,
      (row) => row.title,
    ),
  host: async (client) =>
    named(
      (await client.hosts.list()).items,
      (row) => row.id,
      (row) => `${row.state}, ${row.health.status}`,
    ),
  image: async (client) =>
    named(
      (await client.images.list()).items,
      (row) => row.name,
      (row) => row.reference ?? row.state,
    ),
  volume: async (client) =>
    named(
      (await client.volumes.list()).items,
      (row) => row.name,
      (row) => row.state,
    ),
  workspace: async (client) =>
    named(
      (await client.tenants.listWorkspaces()).items,
      (row) => row.workspace_id,
      (row) => row.name,
    ),
  webhook: async (client) =>
    named(
      (await client.webhooks.list()).items,
      (row) => row.webhook_id,
      (row) => row.url,
    ),
  budget: async (client) =>
    named(
      await client.credits.budgets(),
      (row) => row.budget_id,
      (row) => `${row.scope}, ${row.period}`,
    ),
  key: (client, line) => (line.entry?.name === 'providers' ? providerKeys : apiKeys)(client, line),
  process: async (client, { positionals: [id] }) =>
    id === undefined
      ? []
      : named(
          await client.processes.list(id),
          (row) => row.process_id,
          (row) => row.command.join(' '),
        ),
};

export function lookUpFor(name: string): LookUp | undefined {
  return BY_NAME[name];
}
