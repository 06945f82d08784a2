import type { Command } from 'commander';
import type { CreateSandboxInput } from '../../contract/sandboxes/sandbox.ts';
import { UsageError } from '../failures/usage-error.ts';
import { choice } from './choices.ts';
import { decimalNumber, duration, size, wholeNumber } from './numbers.ts';
import type { Pairs } from './pairs.ts';
import { list, pairs } from './pairs.ts';

type Strategy = NonNullable<NonNullable<CreateSandboxInput['route']>['strategy']>;

const STRATEGIES: readonly Strategy[] = ['prefer-self-hosted', 'lowest-cost', 'lowest-latency', 'explicit'];
export const ISOLATION_LEVELS = ['none', 'policy', 'container', 'gvisor', 'microvm'] as const;

export interface CreateFlags {
  readonly profile?: string;
  readonly id?: string;
  readonly ttl?: string | number;
  readonly idleReap?: string;
  readonly input?: readonly string[];
  readonly access?: 'none' | 'ro' | 'rw';
  readonly label?: Pairs;
  readonly scope?: 'session' | 'agent' | 'shared';
  readonly image?: string;
  readonly volume?: readonly string[];
  readonly cpu?: number;
  readonly memory?: string;
  readonly disk?: string;
  readonly extension?: readonly string[];
  readonly host?: string;
  readonly strategy?: Strategy;
  readonly maxCostPerHour?: number;
  readonly region?: string;
  readonly isolation?: (typeof ISOLATION_LEVELS)[number];
  readonly egress?: readonly string[];
  readonly secret?: readonly string[];
  readonly harness?: string;
  readonly session?: string;
  readonly runId?: string;
  readonly job?: string;
  readonly agent?: string;
  readonly elevated?: boolean;
}

/** Options of the request, shared by `create`, `run` and `route resolve`. */
export function addCreateOptions(command: Command): Command {
  command
    .option('-p, --profile <ref>', 'profile, such as agent-dev or agent-dev@1.0.0')
    .option('--id <id>', 'an id of your own')
    .option('--ttl <duration>', 'how long it lives, such as 2h', duration)
    .option('--idle-reap <duration>', 'destroy after so long without activity; "never" turns it off')
    .option(
      '--input <key=value>',
      'input of the profile; a path of this machine is uploaded; key:=value for JSON',
      list,
    );
  choice(command, '--access <access>', {
    description: 'access to the workspace: none, ro or rw',
    values: ['none', 'ro', 'rw'],
  });
  command.option('-l, --label <key=value>', 'label', pairs('label'));
  const scopes = ['session', 'agent', 'shared'] as const;
  choice(command, '--scope <scope>', {
    description: 'session, agent or shared: who gets the same sandbox again',
    values: scopes,
  });
  command
    .option('--image <name>', 'another image than the profile’s')
    .option('--volume <name:path[:ro]>', 'mount a volume', list)
    .option('--cpu <number>', 'CPUs', decimalNumber)
    .option('--memory <size>', 'memory, such as 2GiB', size)
    .option('--disk <size>', 'disk, such as 10GiB', size)
    .option('--extension <id>', 'only on this backend', list)
    .option('--host <name>', 'only on this host (also: SANDBOXER_HOST)')
    .option('--max-cost-per-hour <usd>', 'refuse what costs more', decimalNumber)
    .option('--region <name>', 'only in this region');
  choice(command, '--strategy <name>', {
    description: 'prefer-self-hosted, lowest-cost, lowest-latency or explicit',
    values: STRATEGIES,
  });
  choice(command, '--isolation <level>', {
    description: 'at least: none, policy, container, gvisor or microvm',
    values: ISOLATION_LEVELS,
  });
  return command
    .option('--egress <host[:port]>', 'allow this destination', list)
    .option('--secret <ref>', 'a secret the profile declares, or provider:key', list)
    .option('--harness <name>', 'tag the caller: name of the harness')
    .option('--session <id>', 'tag the caller: id of its session')
    .option('--run-id <id>', 'tag the caller: id of its run')
    .option('--job <id>', 'tag the caller: id of its job')
    .option('--agent <id>', 'tag the caller: id of its agent')
    .option('--elevated', 'audited escape hatch for administrators');
}

function withoutUndefined<T extends object>(
  value: T,
): { [K in keyof T]: Exclude<T[K], undefined> } | undefined {
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as never);
}

/** Parses `key=text`; `key:=json` for everything else. */
function inputsOf(texts: readonly string[]): Record<string, never> {
  const inputs: Record<string, unknown> = {};
  for (const text of texts) {
    const match = /^([^=:]+)(:?=)([\s\S]*)$/.exec(text);
    if (!match)
      throw new UsageError(`"${text}" is not an input.`, 'Write inputs as key=value, or key:=json.');
    const [, key = '', operator, value = ''] = match;
    try {
      inputs[key] = operator === ':=' ? JSON.parse(value) : value;
    } catch {
      throw new UsageError(`The input "${key}" is not valid JSON.`, 'Write key=value for plain text.');
    }
  }
  return inputs as Record<string, never>;
}

function destination(text: string): { host: string; port?: number } {
  const colon = text.lastIndexOf(':');
  if (colon === -1) return { host: text };
  return { host: text.slice(0, colon), port: wholeNumber(text.slice(colon + 1)) };
}

function volumeMount(text: string): { name: string; path: string; access: 'ro' | 'rw' } {
  const [, name, path, access] = /^([^:]+):([^:]+)(?::(ro|rw))?$/.exec(text) ?? [];
  if (name === undefined || path === undefined)
    throw new UsageError(`"${text}" is not a volume.`, 'Write volumes as name:/path, or name:/path:ro.');
  return { name, path, access: access === 'ro' ? 'ro' : 'rw' };
}

/** Returns the request as the API has it: only the options that were given. */
export function createRequestOf(flags: CreateFlags): CreateSandboxInput {
  const constraints = withoutUndefined({
    region: flags.region,
    require_isolation: flags.isolation,
    max_cost_per_hour: flags.maxCostPerHour,
  });
  const request = {
    id: flags.id,
    profile: flags.profile,
    ttl: flags.ttl,
    idle_reap:
      flags.idleReap === undefined ? undefined : flags.idleReap === 'never' ? null : duration(flags.idleReap),
    inputs: flags.input && inputsOf(flags.input),
    workspace: withoutUndefined({ access: flags.access }),
    labels: flags.label,
    scope: flags.scope,
    image: flags.image,
    volumes: flags.volume?.map(volumeMount),
    resources: withoutUndefined({ cpu: flags.cpu, memory_mb: flags.memory, disk_mb: flags.disk }),
    route: withoutUndefined({
      only: flags.extension && [...flags.extension],
      host: flags.host ?? (process.env.SANDBOXER_HOST || undefined),
      strategy: flags.strategy,
      constraints,
    }),
    network: flags.egress && { default: 'deny', egress: flags.egress.map(destination) },
    setup_metadata: flags.secret && { secret_refs: [...flags.secret] },
    consumer: withoutUndefined({
      harness: flags.harness,
      session_id: flags.session,
      run_id: flags.runId,
      job_id: flags.job,
      agent_id: flags.agent,
    }),
    elevated: flags.elevated,
  };
  return (withoutUndefined(request) ?? {}) as CreateSandboxInput;
}
