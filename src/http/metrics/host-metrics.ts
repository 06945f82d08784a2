import type { Gauge } from 'prom-client';
import type { CanaryStanding } from '../../core/hosts/canary.ts';
import type { HostLoad, HostRecord } from '../../core/hosts/host.ts';
import { overallHealth } from '../../core/hosts/host.ts';
import type { HostFigures } from '../../core/hosts/host-facts.ts';
import type { Store } from '../../core/ports/store/store.ts';
import type { GaugeSpec } from './metrics.ts';

const MIB = 1_048_576;
const times = (amount: number | null | undefined, by: number) =>
  amount === null || amount === undefined ? null : amount * by;

type OfHost = (host: HostRecord, load: HostLoad | undefined) => number | null;

const figure = (key: keyof HostFigures, by = 1): OfHost => {
  return ({ health }) => times(health.figures?.[key], by);
};

const OF_HOSTS: readonly { readonly name: string; readonly help: string; readonly of: OfHost }[] = [
  {
    name: 'host_healthy',
    help: '1 while a host answers its probes and some backend works there, 0 while not.',
    of: ({ health }) => (overallHealth(health).status === 'unhealthy' ? 0 : 1),
  },
  {
    name: 'host_draining',
    help: '1 while nothing new is placed on a host.',
    of: ({ state }) => (state === 'draining' ? 1 : 0),
  },
  {
    name: 'host_probe_latency_seconds',
    help: 'One round trip to a host over a standing connection.',
    of: ({ health }) => times(health.latencyMs, 0.001),
  },
  {
    name: 'host_sandboxes',
    help: 'Sandboxes of ours on a host, those under way included.',
    of: (_, load) => load?.sandboxes ?? 0,
  },
  {
    name: 'host_reserved_cpus',
    help: 'Processors that our sandboxes on a host may use.',
    of: (_, load) => (load?.millicpu ?? 0) / 1000,
  },
  {
    name: 'host_reserved_memory_bytes',
    help: 'Memory that our sandboxes on a host may use.',
    of: (_, load) => (load?.memoryMb ?? 0) * MIB,
  },
  { name: 'host_cpus', help: 'Processors of a host.', of: figure('cpus') },
  { name: 'host_load1', help: 'Load of a host over a minute.', of: figure('load1') },
  { name: 'host_memory_bytes', help: 'Memory of a host.', of: figure('memoryTotalMb', MIB) },
  {
    name: 'host_memory_available_bytes',
    help: 'Memory of a host that is to be had.',
    of: figure('memoryAvailableMb', MIB),
  },
  { name: 'host_disk_bytes', help: 'Disk of a host.', of: figure('diskTotalMb', MIB) },
  { name: 'host_disk_free_bytes', help: 'Free disk of a host.', of: figure('diskFreeMb', MIB) },
];

type OfCanary = (standing: CanaryStanding) => number | null;

const OF_CANARIES: readonly { readonly name: string; readonly help: string; readonly of: OfCanary }[] = [
  {
    name: 'canary_success',
    help: '1 when the last canary of a backend on a host worked, 0 when not.',
    of: ({ failures }) => (failures === 0 ? 1 : 0),
  },
  {
    name: 'canary_last_run_timestamp_seconds',
    help: 'When the last canary ended.',
    of: ({ checkedAt }) => checkedAt / 1000,
  },
  {
    name: 'canary_ready_seconds',
    help: 'From nothing to a sandbox that answers, in the last canary.',
    of: ({ readyMs }) => times(readyMs, 0.001),
  },
  {
    name: 'canary_exec_seconds',
    help: 'The first program of the last canary.',
    of: ({ execMs }) => times(execMs, 0.001),
  },
  {
    name: 'canary_teardown_seconds',
    help: 'Until nothing of the last canary was left.',
    of: ({ goneMs }) => times(goneMs, 0.001),
  },
];

/** A host that is no longer registered has no figures, and a figure that was not measured is left out. */
function put(gauge: Gauge, labels: Record<string, string>, value: number | null): void {
  if (value !== null) gauge.set(labels, value);
}

export function hostGauges(store: Store): readonly GaugeSpec[] {
  const read = () =>
    store.read('host-metrics', async (tx) => ({
      hosts: await tx.hosts.list(),
      loads: await tx.attempts.hostLoads(),
    }));
  const ofHosts = OF_HOSTS.map(({ name, help, of }) => ({
    name,
    help,
    labelNames: ['host'],
    async collect(gauge: Gauge) {
      const { hosts, loads } = await read();
      gauge.reset();
      for (const host of hosts) put(gauge, { host: host.id }, of(host, loads[host.id]));
    },
  }));
  const ofCanaries = OF_CANARIES.map(({ name, help, of }) => ({
    name,
    help,
    labelNames: ['host', 'extension'],
    async collect(gauge: Gauge) {
      const { hosts } = await read();
      gauge.reset();
      for (const { id: host, health } of hosts)
        for (const [extension, standing] of Object.entries(health.canaries ?? {}))
          put(gauge, { host, extension }, of(standing));
    },
  }));
  return [...ofHosts, ...ofCanaries];
}
