import type { Command } from 'commander';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import { durationSeconds } from '../args/numbers.ts';
import type { Invocation } from '../invocation.ts';
import type { Trial } from '../output/canary-view.ts';
import { outcomeColumns } from '../output/canary-view.ts';
import { reportOf } from '../output/print-error.ts';
import type { Column } from '../output/table.ts';

interface Flags {
  readonly profile?: string;
  readonly host?: string;
  readonly timeout: number;
}

const PROFILE = 'sandbox-canary';

const COLUMNS: readonly Column<Trial>[] = [
  { title: 'EXTENSION', value: (row) => row.extension },
  ...outcomeColumns<Trial>('DESTROYED'),
];

/** One life on one backend: created, used, destroyed. What was made is destroyed whatever happens. */
async function tryOut(
  client: SandboxerClient,
  extension: string,
  flags: Flags & { readonly profile: string },
): Promise<Trial> {
  const times: { ready: number | null; exec: number | null; gone: number | null } = {
    ready: null,
    exec: null,
    gone: null,
  };
  let id: string | null = null;
  let problem: string | null = null;
  let since = Date.now();
  const lap = () => {
    const took = Date.now() - since;
    since = Date.now();
    return took;
  };
  try {
    const request = {
      profile: flags.profile,
      ttl: flags.timeout,
      labels: { 'sandboxer.smoke': 'yes' },
      route: {
        only: [extension],
        allow_fallbacks: false,
        ...(flags.host === undefined ? {} : { host: flags.host }),
      },
    };
    id = (await client.sandboxes.create(request, { wait: 'ready', waitSeconds: flags.timeout })).sandbox_id;
    times.ready = lap();
    const { exit } = await client.exec(id, { command: ['true'] }).result();
    times.exec = lap();
    if (exit.code !== 0) problem = `A program that does nothing ended with ${exit.code}.`;
  } catch (error) {
    problem = reportOf(error).message;
  }
  try {
    since = Date.now();
    if (id !== null) await client.sandboxes.destroy(id, { wait: 'destroyed' });
    times.gone = id === null ? null : lap();
  } catch (error) {
    problem ??= reportOf(error).message;
  }
  return {
    extension,
    ok: problem === null,
    ready_ms: times.ready,
    exec_ms: times.exec,
    destroyed_ms: times.gone,
    problem,
  };
}

/** Every backend that the profile could be established on as things are now. */
async function usable(client: SandboxerClient, profile: string): Promise<string[]> {
  const { candidates } = await client.routes.resolve({ profile });
  return candidates.filter(({ rank }) => rank !== null).map(({ extension }) => extension);
}

/** What the server's own canary finds there: each backend needs something else to be tried with, and it knows what. */
async function smokeHost(invocation: Invocation, host: string, wanted: readonly string[]): Promise<void> {
  const client = await invocation.client();
  const { items: all } = await invocation.progress(`Trying ${host}`).during(client.hosts.canary(host));
  const items = all.filter(({ extension }) => wanted.length === 0 || wanted.includes(extension));
  if (items.length === 0 || items.some(({ ok }) => !ok)) invocation.exitCode = 5;
  invocation.printer.result({ host, items }, () => {
    if (items.length === 0) invocation.printer.note(`No such backend is enabled that ${host} serves.`);
    else invocation.printer.table(COLUMNS, items);
  });
}

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('[extension...]', 'only these backends; without them, every one that fits')
    .option('-p, --profile <ref>', `the profile to establish; default: ${PROFILE}`)
    .option(
      '--host <name>',
      'the backends of this host, each with what it needs to be tried; with a profile, that one, only there',
    )
    .option('--timeout <duration>', 'give each so long', durationSeconds, 120)
    .action(async (wanted: string[], flags: Flags) => {
      const { printer } = invocation;
      const client = await invocation.client();
      if (flags.host !== undefined && flags.profile === undefined)
        return await smokeHost(invocation, flags.host, wanted);
      const profile = flags.profile ?? PROFILE;
      const names = wanted.length > 0 ? wanted : await usable(client, profile);
      const items: Trial[] = [];
      for (const name of names) {
        const progress = invocation.progress(`Trying ${name}`);
        items.push(await progress.during(tryOut(client, name, { ...flags, profile })));
      }
      if (items.length === 0 || items.some(({ ok }) => !ok)) invocation.exitCode = 5;
      printer.result({ items }, () => {
        if (items.length === 0) printer.note('No backend can take it: sandboxer route resolve says why.');
        else printer.table(COLUMNS, items);
      });
    });
}
