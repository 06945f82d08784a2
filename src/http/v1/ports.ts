import { PortAccess, PortRequest } from '../../contract/sandboxes/port.ts';
import { openPort } from '../../control/use/open-port.ts';
import { wholeNumber } from '../parse/query-schemas.ts';
import { SandboxPathParams } from '../parse/sandbox-id.ts';
import { previewAccess } from '../preview/preview-origin.ts';
import { json, jsonBody, route } from '../route/route.ts';
import { webSocketRoute } from '../route/web-socket-route.ts';
import { connectPort } from '../streams/connect-port.ts';

export const portRoutes = [
  route({
    method: 'POST',
    url: '/v1/sandboxes/{id}/ports',
    operationId: 'openPort',
    summary: 'An address, on an origin of its own, for an HTTP service on a port inside.',
    tag: 'ports',
    scope: 'sandboxes',
    params: SandboxPathParams,
    body: jsonBody(PortRequest),
    responses: { 200: json(PortAccess, 'The address, and the token it needs unless it is public.') },
    async handler({ services, caller, params, body }) {
      const { control, options } = services;
      const sandbox = await openPort(control, caller, { id: params.id });
      return { status: 200, body: await previewAccess(control, options.preview, { caller, sandbox }, body) };
    },
  }),
  webSocketRoute({
    url: '/v1/sandboxes/{id}/ports/{port}/connect',
    operationId: 'connectPort',
    summary:
      'A tunnel to a TCP port inside: binary messages are its bytes, the text message `end` closes our half.',
    tag: 'ports',
    scope: 'sandboxes',
    params: SandboxPathParams.extend({ port: wholeNumber(1, 65_535) }),
    connect: connectPort,
  }),
];
