import type { Registry } from 'prom-client';
import { Counter, collectDefaultMetrics, Gauge, Histogram } from 'prom-client';
import type { BackendStanding } from '../../contract/extensions/backend-standing.ts';
import { SandboxState } from '../../contract/values/state.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { HttpServices } from '../services/http-services.ts';
import { hostGauges } from './host-metrics.ts';

const BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const PREFIX = 'sandboxer_';
/** Rows that are history are not counted: there is no end to them. */
const COUNTED = SandboxState.options.filter((state) => state !== 'destroyed');

export interface Metrics {
  /** Counts and times an exchange, under the pattern of its route and never under its path. */
  observe(exchange: Exchange, route: string): void;
}

export interface GaugeSpec {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
  collect(gauge: Gauge): void | Promise<void>;
}

/** Servers on several sockets share a registry; each metric is there once, and sums over all of them. */
const sharing = new WeakMap<Registry, Set<HttpServices>>();

function gauges(servers: ReadonlySet<HttpServices>): readonly GaugeSpec[] {
  const [first] = servers;
  const { store } = (first as HttpServices).control;
  const sum = (of: (services: HttpServices) => number) => {
    let total = 0;
    for (const services of servers) total += of(services);
    return total;
  };
  const each = (visit: (id: string, standing: BackendStanding) => void) => {
    const { extensions, health, clock } = (first as HttpServices).control;
    for (const { header } of extensions.all())
      visit(header.id, health.overall(header, extensions.health(header.id).status, clock.now()));
  };
  return [
    {
      name: 'sandboxes',
      help: 'Sandboxes by state, without the destroyed ones.',
      labelNames: ['state'],
      async collect(gauge) {
        const counts = await store.read('metrics', (tx) => tx.sandboxes.countByState());
        for (const state of COUNTED) gauge.set({ state }, counts.get(state) ?? 0);
      },
    },
    {
      name: 'events_last_seq',
      help: 'Number of the latest event.',
      async collect(gauge) {
        gauge.set(await store.read('metrics', (tx) => tx.events.lastSeq()));
      },
    },
    {
      name: 'events_undelivered',
      help: 'Events that the slowest sink has not read yet.',
      async collect(gauge) {
        const lag = await store.read('metrics', async (tx) => {
          const last = await tx.events.lastSeq();
          return last - ((await tx.outbox.minCursor()) ?? last);
        });
        gauge.set(lag);
      },
    },
    {
      name: 'driver_in_flight',
      help: 'Sandboxes that a backend is being called for.',
      collect: (gauge) => gauge.set((first as HttpServices).control.driver.inFlight),
    },
    {
      name: 'backend_breaker_open',
      help: '1 while a failing backend is left alone.',
      labelNames: ['extension'],
      collect: (gauge) =>
        each((id, { breaker }) => gauge.set({ extension: id }, breaker === 'closed' ? 0 : 1)),
    },
    {
      name: 'backend_success_share',
      help: 'The share of creates that succeed, as the router believes.',
      labelNames: ['extension'],
      collect: (gauge) => each((id, { success }) => gauge.set({ extension: id }, success)),
    },
    {
      name: 'backend_wait_seconds',
      help: 'Time to a ready sandbox at the present load, as the router believes.',
      labelNames: ['extension'],
      collect: (gauge) => each((id, { wait_ms }) => gauge.set({ extension: id }, wait_ms / 1000)),
    },
    {
      name: 'backend_in_flight',
      help: 'Creates under way at a backend.',
      labelNames: ['extension'],
      collect: (gauge) => each((id, { in_flight }) => gauge.set({ extension: id }, in_flight)),
    },
    {
      name: 'http_open_streams',
      help: 'Open event streams, execs, watches and tunnels.',
      collect: (gauge) => gauge.set(sum(({ slots }) => slots.total)),
    },
    {
      name: 'http_event_followers',
      help: 'Clients that follow the event log live.',
      collect: (gauge) => gauge.set(sum(({ feed }) => feed.followers)),
    },
    ...hostGauges(store),
  ];
}

const LAG_EVERY_MS = 100;
const observing = new WeakSet<Registry>();

/**
 * Returns the text of all metrics. The process is observed only from the first request on: the observation alone keeps waking an
 * idle process.
 */
export async function metricsText(registry: Registry): Promise<string> {
  if (!observing.has(registry)) {
    observing.add(registry);
    collectDefaultMetrics({ register: registry, prefix: PREFIX, eventLoopMonitoringPrecision: LAG_EVERY_MS });
  }
  return await registry.metrics();
}

function register(registry: Registry, servers: ReadonlySet<HttpServices>): void {
  for (const { name, help, labelNames = [], collect } of gauges(servers)) {
    new Gauge({
      name: `${PREFIX}${name}`,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      async collect() {
        await collect(this);
      },
    });
  }
  const labelNames = ['method', 'route', 'status'];
  new Histogram({
    name: `${PREFIX}http_request_duration_seconds`,
    help: 'Time from the request to the end of the answer, without streams.',
    labelNames,
    buckets: BUCKETS,
    registers: [registry],
  });
  new Counter({
    name: `${PREFIX}http_requests_total`,
    help: 'Requests answered, streams included.',
    labelNames,
    registers: [registry],
  });
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** Requests on these paths are streams or waits, whose duration says nothing about speed. */
const STREAMING = /\/(?:exec|events|output|watch|tree|wait|connect)$/;

/** A client that hangs up once it has the answer, while its own body is still read, did not abort the request. */
function isWhole({ response, request, isAnswered }: Exchange): boolean {
  return response.writableFinished || (isAnswered && !request.complete);
}

export function createMetrics(services: HttpServices): Metrics {
  const { metrics: registry } = services.options;
  const servers = sharing.get(registry) ?? new Set();
  servers.add(services);
  if (servers.size === 1) register(registry, servers);
  sharing.set(registry, servers);
  const durations = registry.getSingleMetric(`${PREFIX}http_request_duration_seconds`) as Histogram;
  const requests = registry.getSingleMetric(`${PREFIX}http_requests_total`) as Counter;
  return {
    observe(exchange, route) {
      exchange.response.once('close', () => {
        const { method = '' } = exchange.request;
        const labels = {
          method: METHODS.has(method) ? method : 'OTHER',
          route,
          status: isWhole(exchange) ? String(exchange.status) : 'aborted',
        };
        requests.inc(labels);
        if (!STREAMING.test(route))
          durations.observe(labels, (performance.now() - exchange.startedAt) / 1000);
      });
    },
  };
}
