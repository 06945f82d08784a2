import { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { API_VERSION, ServerVersion } from '../../contract/values/version.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { metricsText } from '../metrics/metrics.ts';
import { apiPagePolicy } from '../route/api-page.ts';
import { openApiDocument } from '../route/openapi.ts';
import type { RouteDefinition } from '../route/route.ts';
import { json, route, STREAMED } from '../route/route.ts';

const Health = z.strictObject({ status: z.literal('ok') }).meta({ id: 'Health' });
const OpenApi = z.record(z.string(), z.unknown());
const tag = 'meta';

const versionRoute = route({
  method: 'GET',
  url: '/v1/version',
  operationId: 'getVersion',
  summary: 'Identity of the server, and the API versions that it speaks.',
  tag,
  scope: 'public',
  responses: { 200: json(ServerVersion, 'The server.') },
  async handler({ services }) {
    const { options, control } = services;
    return {
      status: 200,
      body: {
        product: 'sand-boxer',
        version: options.version,
        api_version: API_VERSION,
        oldest_api_version: API_VERSION,
        installation_id: control.owner,
      },
    };
  },
});

const livenessRoutes = (['GET', 'HEAD'] as const).flatMap((method) => [
  route({
    method,
    url: '/healthz',
    operationId: method === 'GET' ? 'getHealth' : 'checkHealth',
    summary: 'Whether the process answers.',
    tag,
    scope: 'public',
    responses: { 200: json(Health, 'It does.') },
    async handler() {
      return { status: 200, body: { status: 'ok' } };
    },
  }),
  route({
    method,
    url: '/readyz',
    operationId: method === 'GET' ? 'getReadiness' : 'checkReadiness',
    summary: 'Whether it can take requests.',
    tag,
    scope: 'public',
    responses: { 200: json(Health, 'It can.') },
    async handler({ services }) {
      if (services.options.isReady()) return { status: 200, body: { status: 'ok' } };
      throw new SandboxerError('SBX_UNAVAILABLE', 'The server is not ready.', { retryAfterSeconds: 1 });
    },
  }),
]);

const metricsRoute = route({
  method: 'GET',
  url: '/metrics',
  operationId: 'getMetrics',
  summary: 'Metrics in the format of Prometheus. They cover every workspace.',
  tag,
  scope: 'public',
  responses: { 200: { description: 'The metrics.', content: { 'text/plain': z.string() } } },
  async handler({ services, exchange }) {
    const { metrics, publicMetrics, callerFor } = services.options;
    if (publicMetrics !== true) requireScope(await callerFor(exchange.request), 'server');
    exchange.sendText(200, metrics.contentType, await metricsText(metrics));
    return STREAMED;
  },
});

const pageRoute = route({
  method: 'GET',
  url: '/docs',
  operationId: 'getApiPage',
  summary: 'This API as an HTML page that loads nothing from elsewhere.',
  tag,
  scope: 'public',
  responses: { 200: { description: 'The page.', content: { 'text/html': z.string() } } },
  async handler({ services, exchange }) {
    const html = services.options.apiPage?.();
    if (html === undefined) throw new SandboxerError('SBX_NOT_FOUND', 'The page is not part of this server.');
    const { response } = exchange;
    response.setHeader('content-security-policy', apiPagePolicy(html));
    response.setHeader('referrer-policy', 'no-referrer');
    response.setHeader('x-content-type-options', 'nosniff');
    exchange.sendText(200, 'text/html; charset=utf-8', html);
    return STREAMED;
  },
});

/** The document describes the whole table, itself included. */
export function metaRoutes(others: readonly RouteDefinition[]): readonly RouteDefinition[] {
  let text: string | null = null;
  const documentRoute = route({
    method: 'GET',
    url: '/v1/openapi.json',
    operationId: 'getOpenApi',
    summary: 'This API as an OpenAPI 3.1 document.',
    tag,
    scope: 'public',
    responses: { 200: json(OpenApi, 'The document.') },
    async handler({ services, exchange }) {
      text ??= JSON.stringify(openApiDocument(all, services.options.version));
      exchange.sendText(200, 'application/json; charset=utf-8', text);
      return STREAMED;
    },
  });
  const all: readonly RouteDefinition[] = [
    ...others,
    versionRoute,
    documentRoute,
    pageRoute,
    ...livenessRoutes,
    metricsRoute,
  ];
  return all;
}
