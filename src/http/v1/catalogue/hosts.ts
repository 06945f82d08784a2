import { z } from 'zod';
import {
  CanaryReport,
  Host,
  HostList,
  HostSampleList,
  HostSpec,
  HostTelemetry,
} from '../../../contract/extensions/host.ts';
import { HostId } from '../../../contract/values/ids.ts';
import { runCanary } from '../../../control/hosts/canaries.ts';
import { inspectHost } from '../../../control/hosts/inspect-host.ts';
import {
  addHost,
  drainHost,
  getHost,
  hostSamples,
  listHosts,
  probeHost,
  removeHost,
} from '../../../control/hosts/manage-hosts.ts';
import { isoTime } from '../../../core/ports/clock.ts';
import { presentHost } from '../../present/hosts.ts';
import { json, jsonBody, nothing, route } from '../../route/route.ts';

const params = z.strictObject({ host: HostId });
const tag = 'hosts';
const scope = 'server';

export const hostRoutes = [
  route({
    method: 'GET',
    url: '/v1/hosts',
    operationId: 'listHosts',
    summary:
      'List the hosts with their health and load: `local`, the machine of the server, and the registered ones.',
    tag,
    scope,
    responses: { 200: json(HostList, 'The hosts.') },
    async handler({ services, caller }) {
      return { status: 200, body: { items: (await listHosts(services.control, caller)).map(presentHost) } };
    },
  }),
  route({
    method: 'PUT',
    url: '/v1/hosts/{host}',
    operationId: 'addHost',
    summary: 'Register a host, or change how it is registered.',
    tag,
    scope,
    params,
    body: jsonBody(HostSpec.omit({ id: true }).meta({ id: 'HostRegistration' })),
    responses: { 200: json(Host, 'The host. It is probed soon.') },
    async handler({ services, caller, params: { host: id }, body }) {
      const spec = { ...body, id };
      return { status: 200, body: presentHost(await addHost(services.control, caller, spec)) };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/hosts/{host}',
    operationId: 'getHost',
    summary: 'Show a host.',
    tag,
    scope,
    params,
    responses: { 200: json(Host, 'The host.') },
    async handler({ services, caller, params: { host } }) {
      return { status: 200, body: presentHost(await getHost(services.control, caller, { id: host })) };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/hosts/{host}',
    operationId: 'removeHost',
    summary: 'Forget a host that has no sandboxes.',
    tag,
    scope,
    params,
    responses: { 204: nothing('It is gone.') },
    async handler({ services, caller, params: { host } }) {
      await removeHost(services.control, caller, { id: host });
      return { status: 204, body: undefined };
    },
  }),
  ...(['drain', 'undrain'] as const).map((verb) =>
    route({
      method: 'POST',
      url: `/v1/hosts/{host}/${verb}`,
      operationId: `${verb}Host`,
      summary: verb === 'drain' ? 'Place nothing new on it.' : 'Place sandboxes on it again.',
      tag,
      scope,
      params,
      responses: { 200: json(Host, 'The host as it is now.') },
      async handler({ services, caller, params: { host } }) {
        const state = verb === 'drain' ? 'draining' : 'active';
        return {
          status: 200,
          body: presentHost(await drainHost(services.control, caller, { id: host, state })),
        };
      },
    }),
  ),
  route({
    method: 'POST',
    url: '/v1/hosts/{host}/probe',
    operationId: 'probeHost',
    summary: 'Look at a host now.',
    tag,
    scope,
    params,
    responses: { 200: json(Host, 'The host with what was found.') },
    async handler({ services, exchange, caller, params: { host } }) {
      const { result, ...view } = await probeHost(services.control, caller, {
        id: host,
        signal: exchange.signal,
      });
      const shown = presentHost(view);
      return { status: 200, body: { ...shown, health: { ...shown.health, detail: result.detail } } };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/hosts/{host}/canary',
    operationId: 'runCanary',
    summary:
      'Try every backend of a host now: a sandbox that is charged to no workspace is made, used and removed.',
    tag,
    scope,
    params,
    responses: { 200: json(CanaryReport, 'What each took, and what failed.') },
    async handler({ services, exchange, caller, params: { host } }) {
      const results = await runCanary(services.control, caller, { hostId: host, signal: exchange.signal });
      const items = results.map(({ extensionId, at, ok, readyMs, execMs, goneMs, problem }) => ({
        extension: extensionId,
        at: isoTime(at),
        ok,
        ready_ms: readyMs,
        exec_ms: execMs,
        destroyed_ms: goneMs,
        problem,
      }));
      return { status: 200, body: { host, items } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/hosts/{host}/telemetry',
    operationId: 'inspectHost',
    summary: 'Present state of a host, as it reports it; `local` is the machine of the server.',
    tag,
    scope,
    params,
    responses: { 200: json(HostTelemetry, 'Figures; what the machine does not tell is null.') },
    async handler({ services, exchange, caller, params: { host } }) {
      return {
        status: 200,
        body: await inspectHost(services.control, caller, { id: host, signal: exchange.signal }),
      };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/hosts/{host}/samples',
    operationId: 'hostSamples',
    summary: 'The figures that were kept of a host, newest first: of its probes, or of its canaries.',
    tag,
    scope,
    params,
    query: z.strictObject({ kind: z.enum(['probe', 'canary']).default('probe') }),
    responses: { 200: json(HostSampleList, 'The figures.') },
    async handler({ services, caller, params: { host }, query }) {
      const samples = await hostSamples(services.control, caller, { id: host, kind: query.kind });
      return {
        status: 200,
        body: { items: samples.map(({ at, data }) => ({ at: isoTime(at), data: { ...data } })) },
      };
    },
  }),
];
