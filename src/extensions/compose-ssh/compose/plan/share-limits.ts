/** Divides the sandbox’s limits among its services: together they never have more. */
import type { Resources } from '../../../../contract/profiles/profile.ts';
import type { ServiceLimits, ServiceModel } from '../model/stack-model.ts';
import type { Findings } from '../yaml/finding.ts';

const MIB = 1_048_576;
/** The least that the engine accepts. */
const LEAST = { cpus: 0.01, memoryBytes: 6 * MIB, pids: 4 } as const;
/** Default without a limit: enough for any service, too few to choke a host. */
const USUAL_PIDS = 4096;

type LimitName = keyof ServiceLimits;
const FIELDS: Readonly<Record<LimitName, string>> = {
  cpus: 'cpus',
  memoryBytes: 'mem_limit',
  pids: 'pids_limit',
};

/** Divides what the named parts leave of `total` in equal parts among the other services. */
function deal(
  name: LimitName,
  total: number | null,
  services: ReadonlyMap<string, ServiceModel>,
  findings: Findings,
): Map<string, number | null> {
  const parts = [...services.values()].map((service) => ({
    service: service.name,
    declared: service.declared[name],
    count: Math.max(1, service.replicas),
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
  services: ReadonlyMap<string, ServiceModel>,
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
