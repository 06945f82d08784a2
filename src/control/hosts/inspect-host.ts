import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Host, HostTelemetry } from '../../contract/extensions/host.ts';
import type { HostHealthRecord } from '../../core/hosts/host.ts';
import type { HostFacts } from '../../core/hosts/host-facts.ts';
import { factNumbers, factText, hostFigures, readHostFacts } from '../../core/hosts/host-facts.ts';
import { isoTime, isoTimeOrNull } from '../../core/ports/clock.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { getHost } from './manage-hosts.ts';

const ENGINES = ['docker', 'docker_rootless', 'compose', 'compose_plugin'] as const;
const SHOWN = 100;

function isolationOf(facts: HostFacts): string[] {
  const userNamespaces = (factNumbers(facts, 'userns')[0] ?? 0) > 0 ? ['user-namespaces'] : [];
  const cgroup = factText(facts, 'cgroup');
  return [
    ...(facts.get('runtime') ?? []),
    ...(['landlock', 'kvm'] as const).filter((name) => facts.has(name)),
    ...(facts.has('rootless_engine') ? ['rootless-engine'] : []),
    ...userNamespaces,
    ...(cgroup === null ? [] : [`cgroups:${cgroup}`]),
  ];
}

const isWhose = (text: string | undefined): text is HostTelemetry['running'][number]['whose'] =>
  text === 'ours' || text === 'other_owner' || text === 'not_ours';

function runningOf(facts: HostFacts): HostTelemetry['running'] {
  return (facts.get('container') ?? []).slice(0, SHOWN).flatMap((line) => {
    const [name, image, state, whose] = line.split(' ');
    if (name === undefined || image === undefined || state === undefined || !isWhose(whose)) return [];
    return [{ name, image, state, whose }];
  });
}

async function oursOn(deps: ControlPorts, hostId: string): Promise<HostTelemetry['ours']> {
  return deps.store.read('on-host', async (tx) => {
    const items: HostTelemetry['ours'] = [];
    for (const { sandboxUid, extensionId } of await tx.attempts.onHost(hostId, SHOWN)) {
      const row = await tx.sandboxes.get(sandboxUid);
      if (!row) continue;
      const { id: sandbox_id, workspaceId: workspace, state, stateSince } = row;
      items.push({ sandbox_id, workspace, extension: extensionId, state, since: isoTime(stateSince) });
    }
    return items;
  });
}

export function presentCanaries({ canaries = {} }: HostHealthRecord): Host['health']['canaries'] {
  return Object.entries(canaries).map(([extension, standing]) => ({
    extension,
    status: standing.status,
    detail: standing.detail,
    since: isoTimeOrNull(standing.since),
    checked_at: isoTime(standing.checkedAt),
    failures: standing.failures,
    ready_ms: standing.readyMs,
    exec_ms: standing.execMs,
    destroyed_ms: standing.goneMs,
  }));
}

interface InspectHost {
  readonly id: string;
  readonly signal: AbortSignal;
}

/** Asks a machine about itself, now. */
export async function inspectHost(
  control: Control,
  caller: Caller,
  { id, signal }: InspectHost,
): Promise<HostTelemetry> {
  requireScope(caller, 'server');
  const { host, load } = await getHost(control, caller, { id });
  if (!control.hosts)
    throw new SandboxerError('SBX_UNSUPPORTED', 'This server does not look at hosts.', {
      remedy: 'Start it with a configuration of hosts.',
    });
  const startedAt = control.clock.now();
  const facts = readHostFacts(await control.hosts.facts(host, control.owner, signal));
  const latency_ms = control.clock.now() - startedAt;
  const figures = hostFigures(facts);
  const count = (whose: string) => factNumbers(facts, `containers_${whose}`)[0] ?? 0;
  return {
    host: id,
    kernel: factText(facts, 'kernel'),
    machine: factText(facts, 'machine'),
    user: factText(facts, 'user'),
    cpus: figures.cpus,
    load: factNumbers(facts, 'load'),
    memory_total_mb: figures.memoryTotalMb,
    memory_available_mb: figures.memoryAvailableMb,
    disk_total_mb: figures.diskTotalMb,
    disk_free_mb: figures.diskFreeMb,
    uptime_seconds: factNumbers(facts, 'uptime_seconds')[0] ?? null,
    latency_ms,
    engines: Object.fromEntries(
      ENGINES.flatMap((name) => {
        const version = factText(facts, name);
        return version === null ? [] : [[name, version]];
      }),
    ),
    isolation: isolationOf(facts),
    containers: { ours: count('ours'), other_owner: count('other_owner'), not_ours: count('not_ours') },
    running: runningOf(facts),
    sandboxes: load.sandboxes,
    ours: await oursOn(control, id),
    canaries: presentCanaries(host.health),
    seen_at: isoTime(startedAt),
  };
}
