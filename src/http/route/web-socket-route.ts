import type { IncomingMessage } from 'node:http';
import type { WebSocket } from 'ws';
import type { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { HttpServices } from '../services/http-services.ts';
import type { RouteDefinition } from './route.ts';

export type Farewell = (webSocket: WebSocket, reason: SandboxerError) => void;

export interface WebSocketContext<P> {
  readonly services: HttpServices;
  readonly request: IncomingMessage;
  readonly requestId: string;
  readonly caller: Caller;
  readonly params: P;
  /** Aborts with an error when the caller's key ends, and with any reason when the client is gone. */
  readonly signal: AbortSignal;
  /**
   * Answers the handshake. An error thrown before is an HTTP answer; afterwards only the socket can carry it. `farewell` sends
   * the reason before the socket is closed with 1008, when the key ends.
   */
  accept(farewell?: Farewell): Promise<WebSocket>;
}

export type Connect<P> = (context: WebSocketContext<P>) => Promise<void>;

/** Makes a route that is served as a WebSocket; a plain GET of it gets an error that says so. */
export function webSocketRoute<P extends z.ZodObject>(
  definition: Pick<
    RouteDefinition,
    'url' | 'operationId' | 'summary' | 'tag' | 'scope' | 'beginsWithRequest'
  > & {
    readonly params: P;
    readonly connect: Connect<z.output<P>>;
  },
): RouteDefinition {
  return {
    ...definition,
    method: 'GET',
    connect: definition.connect as Connect<never>,
    responses: { 101: { description: 'The connection is a WebSocket now.', content: {} } },
    async handler() {
      throw new SandboxerError('SBX_INVALID_REQUEST', 'This path is served as a WebSocket.', {
        remedy: 'Send an upgrade request: "Connection: Upgrade", "Upgrade: websocket".',
      });
    },
  };
}
