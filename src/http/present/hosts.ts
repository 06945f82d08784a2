import type { Host } from '../../contract/extensions/host.ts';
import { presentCanaries } from '../../control/hosts/inspect-host.ts';
import type { HostView } from '../../control/hosts/manage-hosts.ts';
import { overallHealth } from '../../core/hosts/host.ts';
import { isoTime, isoTimeOrNull } from '../../core/ports/clock.ts';

export function presentHost({ host, load }: HostView): Host {
  const { health } = host;
  const { status, detail, since } = overallHealth(health);
  return {
    ...host.spec,
    source: host.source,
    state: host.state,
    health: {
      status,
      detail,
      since: isoTimeOrNull(since),
      checked_at: isoTimeOrNull(health.checkedAt),
      latency_ms: health.latencyMs,
      failures: health.failures,
      canaries: presentCanaries(health),
    },
    load: { sandboxes: load.sandboxes, cpu: load.millicpu / 1000, memory_mb: load.memoryMb },
    created_at: isoTime(host.createdAt),
  };
}
