import { RouteExplanation, RoutePlan } from '../../../contract/routing/route.ts';
import { CreateSandboxRequest } from '../../../contract/sandboxes/sandbox.ts';
import { explainRoute } from '../../../control/sandboxes/get-sandbox.ts';
import { resolveRoute } from '../../../control/sandboxes/resolve-route.ts';
import { SandboxPathParams } from '../../parse/sandbox-id.ts';
import { json, jsonBody, route } from '../../route/route.ts';

const tag = 'routes';

export const routingRoutes = [
  route({
    method: 'POST',
    url: '/v1/routes/resolve',
    operationId: 'resolveRoute',
    summary: 'Where a create would go and why, without creating anything.',
    tag,
    scope: 'read',
    body: jsonBody(CreateSandboxRequest, 'large'),
    responses: { 200: json(RoutePlan, 'Every candidate with its rank or what excludes it.') },
    async handler({ services, caller, body }) {
      return { status: 200, body: await resolveRoute(services.control, caller, body) };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/route',
    operationId: 'explainRoute',
    summary: 'Reasons for the place of a sandbox: the stored decision and every attempt.',
    tag,
    scope: 'read',
    params: SandboxPathParams,
    responses: { 200: json(RouteExplanation, 'The decision and the attempts.') },
    async handler({ services, caller, params }) {
      return {
        status: 200,
        body: services.present.route(await explainRoute(services.control, caller, { id: params.id })),
      };
    },
  }),
];
