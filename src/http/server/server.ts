import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import Fastify from 'fastify';
import { Exchange } from '../exchange/exchange.ts';
import { holdContinue } from '../exchange/expected-continue.ts';
import { createMetrics } from '../metrics/metrics.ts';
import { requireClearHead } from '../parse/message-head.ts';
import type { RouteDefinition } from '../route/route.ts';
import type { HttpOptions } from '../services/http-options.ts';
import { HttpServices } from '../services/http-services.ts';
import { answerClientError } from './client-error.ts';
import { optionsOf, unknownRoute } from './not-found.ts';
import { requestIdOf } from './request-id.ts';
import { ROUTE_TABLE } from './route-table.ts';
import { failExchange, serveRoute } from './serve-route.ts';
import { isWebSocketRequest, serveUpgrades } from './serve-upgrades.ts';

/** The longest name in a path is a profile with its version. */
const LONGEST_SEGMENT = 256;

/** `/v1/sandboxes/{id}` as Fastify spells it. */
function fastifyUrl(url: string): string {
  return url.replaceAll(/\{(\w+)\}/g, ':$1');
}

/** HEAD is GET without the body, unless the table has a way of its own for it. */
function methodsFor({ method, url }: RouteDefinition): string[] {
  if (method !== 'GET') return [method];
  const own = ROUTE_TABLE.some((other) => other.method === 'HEAD' && other.url === url);
  return own ? [method] : [method, 'HEAD'];
}

/** Makes the HTTP server of the use-cases. A later `listen` decides where: on a unix socket or TCP. */
export async function createHttpServer(options: HttpOptions): Promise<FastifyInstance> {
  const services = new HttpServices(options);
  const { limits } = services;
  const metrics = createMetrics(services);

  const exchangeOf = (request: IncomingMessage, response: ServerResponse, route: string) => {
    const exchange = new Exchange(request, response, requestIdOf(request), services.open);
    metrics.observe(exchange, route);
    return exchange;
  };

  const app = Fastify({
    logger: false,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    routerOptions: {
      maxParamLength: LONGEST_SEGMENT,
      // Queries are read strictly, with the route's own schema.
      querystringParser: () => ({}),
    },
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: Math.min(limits.headersMs, 5_000),
      // Uploads take as long as they take; `read-body.ts` watches them.
      requestTimeout: 0,
      shouldUpgradeCallback: isWebSocketRequest,
    },
    clientErrorHandler: answerClientError,
    frameworkErrors(error, request, reply) {
      reply.hijack();
      failExchange(services, exchangeOf(request.raw, reply.raw, 'unmatched'), error);
    },
  });

  // Bodies are read by `serveRoute`, after authentication and within the limits of the route.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));

  for (const definition of ROUTE_TABLE) {
    app.route({
      method: methodsFor(definition),
      url: fastifyUrl(definition.url),
      handler(request, reply) {
        reply.hijack();
        const exchange = exchangeOf(request.raw, reply.raw, definition.url);
        void serveRoute(services, definition, exchange, request.params);
      },
    });
  }
  app.setNotFoundHandler((request, reply) => {
    reply.hijack();
    const exchange = exchangeOf(request.raw, reply.raw, 'unmatched');
    try {
      requireClearHead(request.raw);
      const options = optionsOf(request.raw);
      if (options) return exchange.sendEmpty(204, options);
      const { error, headers } = unknownRoute(request.raw);
      failExchange(services, exchange, error, headers);
    } catch (error) {
      failExchange(services, exchange, error);
    }
  });
  app.setErrorHandler((error, request, reply) => {
    reply.hijack();
    failExchange(services, exchangeOf(request.raw, reply.raw, 'unmatched'), error);
  });

  holdContinue(app.server);
  const upgrades = serveUpgrades(app.server, services);
  app.addHook('preClose', async () => {
    services.stop();
    upgrades.stop();
    const force = setTimeout(() => app.server.closeAllConnections(), limits.shutdownMs);
    app.server.once('close', () => clearTimeout(force));
  });
  app.addHook('onClose', () => {
    services.keyEnds.close();
    return services.audit.flush();
  });
  await app.ready();
  return app;
}
