import type { Command } from 'commander';
import type { SandboxerClient } from '../../../client/sandboxer-client.ts';
import { SandboxerApiError } from '../../../client/transport/api-error.ts';
import { durationSeconds } from '../../args/numbers.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import type { Trial } from '../../output/canary-view.ts';
import { outcomeColumns } from '../../output/canary-view.ts';
import { reportOf } from '../../output/print-error.ts';
import type { Column } from '../../output/table.ts';

interface Flags {
  readonly profile?: string;
  readonly host?: string;
  readonly timeout: number;
}

/** Profile that pins no backend and needs no input. */
const PROFILE = 'run';

interface HostTrial extends Trial {
  readonly host: string;
}

const OUTCOME: readonly Column<Trial>[] = [
  { title: 'EXTENSION', value: (row) => row.extension },
  ...outcomeColumns<Trial>('DESTROYED'),
];
const COLUMNS: readonly Column<Trial & { readonly host?: string }>[] = [
  { title: 'HOST', value: (row) => row.host ?? '-' },
  ...OUTCOME,
];

/** Runs one life on one backend: create, use, destroy. The sandbox is destroyed whatever happens. */
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

/** Returns the backends that the profile can be established on at present. */
async function usable(client: SandboxerClient, profile: string): Promise<string[]> {
  const { candidates } = await client.routes.resolve({ profile });
  return candidates.filter(({ rank }) => rank !== null).map(({ extension }) => extension);
}

/** Runs the server's own canary there: each backend needs other inputs for a trial, and the server has them. */
async function canaryOn(invocation: Invocation, host: string, wanted: readonly string[]): Promise<Trial[]> {
  const client = await invocation.client();
  const { items } = await invocation.progress(`Trying ${host}`).during(client.hosts.canary(host));
  return items.filter(({ extension }) => wanted.length === 0 || wanted.includes(extension));
}

async function canariesEverywhere(invocation: Invocation, wanted: readonly string[]): Promise<HostTrial[]> {
  const client = await invocation.client();
  const { items: hosts } = await client.hosts.list();
  const found: HostTrial[] = [];
  for (const host of hosts.filter((each) => each.class === 'sandbox' && each.state !== 'draining'))
    for (const trial of await canaryOn(invocation, host.id, wanted)) found.push({ host: host.id, ...trial });
  return found;
}

/** Returns backends without a host of ours: vendors. Demo backends isolate nothing, and take only profiles of their own. */
async function vendors(client: SandboxerClient): Promise<string[]> {
  const { items } = await client.extensions.list();
  const healthy = items.filter(({ enabled, health }) => enabled && health.status === 'healthy');
  return healthy
    .filter(({ capabilities }) => capabilities.hosting === 'saas' && !capabilities.demo)
    .map(({ id }) => id);
}

async function tryEach(
  invocation: Invocation,
  names: readonly string[],
  flags: Flags & { readonly profile: string },
): Promise<Trial[]> {
  const client = await invocation.client();
  const items: Trial[] = [];
  for (const name of names)
    items.push(await invocation.progress(`Trying ${name}`).during(tryOut(client, name, flags)));
  return items;
}

/** Tries every backend: on each host by the canary of the server, and vendors by a profile that any of them can take. */
async function tryAll(invocation: Invocation, wanted: readonly string[], flags: Flags): Promise<Trial[]> {
  const client = await invocation.client();
  const asTenant = { ...flags, profile: PROFILE };
  try {
    const found = await canariesEverywhere(invocation, wanted);
    const tried = new Set(found.map(({ extension }) => extension));
    const others = wanted.length > 0 ? wanted : await vendors(client);
    const left = others.filter((name) => !tried.has(name));
    return [...found, ...(await tryEach(invocation, left, asTenant))];
  } catch (error) {
    // Hosts belong to the operator.
    if (!(error instanceof SandboxerApiError) || error.code !== 'SBX_FORBIDDEN') throw error;
    return tryEach(invocation, wanted.length > 0 ? wanted : await usable(client, PROFILE), asTenant);
  }
}

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('[extension...]', 'only these backends; without them, every healthy one')
    .option(
      '-p, --profile <ref>',
      'the profile to establish; default: what the server tries each backend with by itself',
    )
    .option(
      '--host <name>',
      'the backends of this host, each with what it needs to be tried; with a profile, that one, only there',
    )
    .option('--timeout <duration>', 'give each so long', durationSeconds, 120)
    .action(async (wanted: string[], flags: Flags) => {
      const { printer } = invocation;
      const { profile, host } = flags;
      const names = async () =>
        wanted.length > 0 ? wanted : await usable(await invocation.client(), profile as string);
      const items =
        profile !== undefined
          ? await tryEach(invocation, await names(), { ...flags, profile })
          : host !== undefined
            ? await canaryOn(invocation, host, wanted)
            : await tryAll(invocation, wanted, flags);
      if (items.length === 0 || items.some(({ ok }) => !ok)) invocation.exitCode = 5;
      printer.result({ ...(host !== undefined && profile === undefined && { host }), items }, () => {
        if (items.length > 0) printer.table(items.some((row) => 'host' in row) ? COLUMNS : OUTCOME, items);
        else if (host !== undefined) printer.note(`No such backend is enabled that ${host} serves.`);
        else printer.note('No backend can take it: sandboxer route resolve says why.');
      });
    });
}
