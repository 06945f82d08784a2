import { SandboxerError } from '../contract/errors.ts';
import type { HostTelemetry } from '../contract/host.ts';
import type { Caller } from '../core/caller.ts';
import { requireScope } from '../core/caller.ts';
import { isoTime } from '../core/clock.ts';
import { LOCAL_HOST } from '../core/host.ts';
import type { ControlDeps } from './deps.ts';
import { getHost } from './manage-hosts.ts';

const MAX_LINE = 300;

type Facts = ReadonlyMap<string, readonly string[]>;

/** `key value` lines of a machine that need not be honest: bounded, printable, and the rest is dropped. */
function parse(text: string): Facts {
  const facts = new Map<string, string[]>();
  for (const line of text.split('\n').slice(0, 500)) {
    const match = /^([a-z_]{1,40}) ([ -~]+)$/.exec(line.slice(0, MAX_LINE));
    if (!match) continue;
    const [, key = '', value = ''] = match;
    facts.set(key, [...(facts.get(key) ?? []), value]);
  }
  return facts;
}

function text(facts: Facts, key: string): string | null {
  return facts.get(key)?.[0] ?? null;
}

function numbers(facts: Facts, key: string): number[] {
  return (text(facts, key) ?? '').split(' ').map(Number.parseFloat).filter(Number.isFinite);
}

function megabytes(kilobytes: number | undefined): number | null {
  return kilobytes === undefined ? null : Math.floor(kilobytes / 1024);
}

const ENGINES = ['docker', 'compose', 'compose_plugin'] as const;

function isolationOf(facts: Facts): string[] {
  const userNamespaces = (numbers(facts, 'userns')[0] ?? 0) > 0 ? ['user-namespaces'] : [];
  const cgroup = text(facts, 'cgroup');
  return [
    ...(facts.get('runtime') ?? []),
    ...(['landlock', 'kvm'] as const).filter((name) => facts.has(name)),
    ...userNamespaces,
    ...(cgroup === null ? [] : [`cgroups:${cgroup}`]),
  ];
}

/** Asks a machine about itself, now. */
export async function inspectHost(
  deps: ControlDeps,
  caller: Caller,
  id: string,
  signal: AbortSignal,
): Promise<HostTelemetry> {
  requireScope(caller, 'server');
  const host = id === LOCAL_HOST ? null : (await getHost(deps, caller, id)).host;
  if (!deps.hosts)
    throw new SandboxerError('SBX_UNSUPPORTED', 'This server does not look at hosts.', {
      remedy: 'Start it with a configuration of hosts.',
    });
  const startedAt = deps.clock.now();
  const facts = parse(await deps.hosts.facts(host, deps.owner, signal));
  const loads = await deps.store.read('host-loads', (tx) => tx.attempts.hostLoads());
  const [diskTotal, diskFree] = numbers(facts, 'disk_kb');
  return {
    host: id,
    kernel: text(facts, 'kernel'),
    machine: text(facts, 'machine'),
    user: text(facts, 'user'),
    cpus: numbers(facts, 'cpus')[0] ?? null,
    load: numbers(facts, 'load'),
    memory_total_mb: megabytes(numbers(facts, 'memory_total_kb')[0]),
    memory_available_mb: megabytes(numbers(facts, 'memory_available_kb')[0]),
    disk_total_mb: megabytes(diskTotal),
    disk_free_mb: megabytes(diskFree),
    uptime_seconds: numbers(facts, 'uptime_seconds')[0] ?? null,
    latency_ms: deps.clock.now() - startedAt,
    engines: Object.fromEntries(
      ENGINES.flatMap((name) => {
        const version = text(facts, name);
        return version === null ? [] : [[name, version]];
      }),
    ),
    isolation: isolationOf(facts),
    containers: {
      ours: numbers(facts, 'containers_ours')[0] ?? 0,
      other_owner: numbers(facts, 'containers_other_owner')[0] ?? 0,
      not_ours: numbers(facts, 'containers_not_ours')[0] ?? 0,
    },
    sandboxes: loads[id]?.sandboxes ?? 0,
    seen_at: isoTime(startedAt),
  };
}
