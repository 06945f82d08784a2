/** The sandbox’s limits, dealt out to its services: together they never have more. */
import type { Resources } from '../../../contract/profile.ts';
import type { Tree } from './compose-yaml.ts';
import { isTree } from './compose-yaml.ts';
import type { Findings } from './finding.ts';
import { bytesOf, numberOf } from './scalars.ts';

export interface ServiceLimits {
  readonly cpus: number | null;
  readonly memoryBytes: number | null;
  readonly pids: number | null;
}

const MIB = 1_048_576;
/** The engine runs nothing with less. */
const LEAST = { cpus: 0.01, memoryBytes: 6 * MIB, pids: 4 } as const;
/** Where nobody says how many: enough for any service, too few to choke a host. */
const USUAL_PIDS = 4096;

type LimitName = keyof ServiceLimits;
const FIELDS: Readonly<Record<LimitName, string>> = {
  cpus: 'cpus',
  memoryBytes: 'mem_limit',
  pids: 'pids_limit',
};

export function replicasOf(service: Tree): number {
  const deploy = isTree(service.deploy) ? service.deploy : {};
  const count = numberOf(service.scale) ?? numberOf(deploy.replicas) ?? 1;
  return Math.max(0, Math.trunc(count));
}

/** What the file itself says, in whichever of the two places. */
function declaredLimits(service: Tree): ServiceLimits {
  const deploy = isTree(service.deploy) ? service.deploy : {};
  const resources = isTree(deploy.resources) ? deploy.resources : {};
  const limits = isTree(resources.limits) ? resources.limits : {};
  const positive = (value: number | null) => (value !== null && value > 0 ? value : null);
  return {
    cpus: positive(numberOf(service.cpus)) ?? positive(numberOf(limits.cpus)),
    memoryBytes: positive(bytesOf(service.mem_limit)) ?? positive(bytesOf(limits.memory)),
    pids: positive(numberOf(service.pids_limit)) ?? positive(numberOf(limits.pids)),
  };
}

/** What is left of `total` after those who name their part, in equal parts for the others. */
function deal(
  name: LimitName,
  total: number | null,
  services: ReadonlyMap<string, Tree>,
  findings: Findings,
): Map<string, number | null> {
  const parts = [...services].map(([service, tree]) => ({
    service,
    declared: declaredLimits(tree)[name],
    count: Math.max(1, replicasOf(tree)),
  }));
  if (total === null) {
    return new Map(
      parts.map(({ service, declared }) => [service, declared ?? (name === 'pids' ? USUAL_PIDS : null)]),
    );
  }
  const taken = parts.reduce((sum, { declared, count }) => sum + (declared ?? 0) * count, 0);
  const open = parts.reduce((sum, { declared, count }) => sum + (declared === null ? count : 0), 0);
  const each = open === 0 ? 0 : (total - taken) / open;
  if (taken > total || (open > 0 && each < LEAST[name])) {
    const [first] = parts;
    const wanted =
      name === 'memoryBytes'
        ? `${Math.ceil(taken / MIB)} MiB of ${Math.floor(total / MIB)}`
        : `${taken} of ${total}`;
    findings.invalid(
      null,
      FIELDS[name],
      `The services name ${wanted}, and ${open} more need some (${first?.service} …).`,
      'Lower the limits in the compose file, or ask for more resources.',
    );
  }
  const rounded = name === 'cpus' ? Math.floor(each * 100) / 100 : Math.floor(each);
  return new Map(parts.map(({ service, declared }) => [service, declared ?? rounded]));
}

export function shareLimits(
  services: ReadonlyMap<string, Tree>,
  resources: Resources,
  findings: Findings,
): Map<string, ServiceLimits> {
  const cpus = deal('cpus', resources.cpu, services, findings);
  const memory = deal(
    'memoryBytes',
    resources.memory_mb === null ? null : resources.memory_mb * MIB,
    services,
    findings,
  );
  const pids = deal('pids', resources.pids, services, findings);
  return new Map(
    [...services.keys()].map((name) => [
      name,
      { cpus: cpus.get(name) ?? null, memoryBytes: memory.get(name) ?? null, pids: pids.get(name) ?? null },
    ]),
  );
}
