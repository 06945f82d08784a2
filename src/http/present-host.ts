import type { Host } from '../contract/host.ts';
import type { HostView } from '../control/manage-hosts.ts';
import { isoTime, isoTimeOrNull } from '../core/clock.ts';

export function presentHost({ host, load }: HostView): Host {
  const { health } = host;
  return {
    ...host.spec,
    source: host.source,
    state: host.state,
    health: {
      status: health.status,
      detail: health.detail,
      since: isoTimeOrNull(health.since),
      checked_at: isoTimeOrNull(health.checkedAt),
      latency_ms: health.latencyMs,
      failures: health.failures,
    },
    load: { sandboxes: load.sandboxes, cpu: load.millicpu / 1000, memory_mb: load.memoryMb },
    created_at: isoTime(host.createdAt),
  };
}
