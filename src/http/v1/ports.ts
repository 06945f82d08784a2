import { connectPort } from '../connect-port.ts';
import { wholeNumber } from '../query-schemas.ts';
import { webSocketRoute } from '../web-socket-route.ts';
import { SandboxPathParams } from './sandbox-id.ts';

export const portRoutes = [
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
