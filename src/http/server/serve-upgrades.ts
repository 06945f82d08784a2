import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { WebSocketServer } from 'ws';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { watchMessages } from '../bounds/message-watch.ts';
import { ClientGone } from '../exchange/exchange.ts';
import { requireClearHead } from '../parse/message-head.ts';
import { problemOf } from '../present/problem-of.ts';
import type { RouteDefinition } from '../route/route.ts';
import type { Farewell } from '../route/web-socket-route.ts';
import type { HttpServices } from '../services/http-services.ts';
import { answerOnSocket } from './client-error.ts';
import { RequestAudit } from './request-audit.ts';
import { requestIdOf } from './request-id.ts';
import { ROUTE_TABLE } from './route-table.ts';
import { identify, readAddress, requireApiVersion } from './serve-route.ts';

/** A browser cannot send an Authorization header with a WebSocket; it can offer a subprotocol. */
const BEARER_PROTOCOL = /^bearer\.([\x21-\x2b\x2d-\x7e]{8,512})$/;
const PROTOCOL = 'sandboxer.v1';
const GOING_AWAY = 1001;
const REFUSED = 1008;
const LAST_WORDS_MS = 1_000;

/** Closes a connection with a reason, and ignores its further messages. A peer that does not leave is cut. */
function shut(webSocket: WebSocket, code: number, reason: string): void {
  webSocket.removeAllListeners('message');
  webSocket.close(code, reason);
  // Reading goes on so that the peer's close frame arrives.
  webSocket.resume();
  setTimeout(() => webSocket.terminate(), LAST_WORDS_MS).unref();
}

interface Upgradable {
  readonly definition: RouteDefinition;
  readonly pattern: RegExp;
}

const UPGRADABLE: readonly Upgradable[] = ROUTE_TABLE.filter(({ connect }) => connect !== undefined).map(
  (definition) => ({
    definition,
    pattern: new RegExp(`^${definition.url.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]{1,768})')}$`),
  }),
);

function decoded(groups: Record<string, string>): Record<string, string> {
  try {
    return Object.fromEntries(
      Object.entries(groups).map(([name, value]) => [name, decodeURIComponent(value)]),
    );
  } catch {
    throw new SandboxerError('SBX_INVALID_REQUEST', 'The path is not valid percent-encoded UTF-8.');
  }
}

function find(url: string): { definition: RouteDefinition; params: Record<string, string> } {
  const path = url.split('?', 1)[0] ?? '';
  for (const { definition, pattern } of UPGRADABLE) {
    const match = pattern.exec(path);
    if (match) return { definition, params: decoded({ ...match.groups }) };
  }
  throw new SandboxerError('SBX_NOT_FOUND', 'There is no WebSocket at this path.', {
    remedy: 'See /v1/openapi.json for the paths that exist.',
  });
}

function bearerFromProtocol(request: IncomingMessage): void {
  if (request.headers.authorization !== undefined) return;
  for (const offered of (request.headers['sec-websocket-protocol'] ?? '').split(',')) {
    const key = BEARER_PROTOCOL.exec(offered.trim())?.[1];
    if (key !== undefined) request.headers.authorization = `Bearer ${key}`;
  }
}

/** Any other upgrade, and any other method, is an ordinary request. */
export function isWebSocketRequest(request: IncomingMessage): boolean {
  return request.method === 'GET' && request.headers.upgrade?.toLowerCase() === 'websocket';
}

interface UpgradeRequest {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  readonly head: Buffer;
  readonly requestId: string;
}

/** WebSockets on the same port, with the same authentication as everything else. */
export function serveUpgrades(server: Server, services: HttpServices): { stop(): void } {
  const { limits } = services;
  const sockets = new Set<WebSocket>();
  const handshakes = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: limits.execBytes,
    // A client that offers protocols must get one of them back; ours if it is there, which does not repeat the key.
    handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : ([...offered][0] ?? false)),
  });

  handshakes.on('wsClientError', (error, socket, request) => {
    const problem = new SandboxerError(
      'SBX_INVALID_REQUEST',
      `The WebSocket handshake is wrong: ${error.message}.`,
    );
    answerOnSocket(socket as Socket, problem, requestIdOf(request));
  });

  const keepAlive = (webSocket: WebSocket) => {
    let answered = true;
    webSocket.on('pong', () => {
      answered = true;
    });
    const timer = setInterval(() => {
      // While we do not read, the answer cannot be seen.
      if (!answered && !webSocket.isPaused) return webSocket.terminate();
      answered = false;
      webSocket.ping();
    }, limits.heartbeatMs);
    webSocket.once('close', () => clearInterval(timer));
  };

  const serve = async (request: IncomingMessage, socket: Socket, head: Buffer, requestId: string) => {
    services.requireRunning();
    requireClearHead(request);
    if (!isWebSocketRequest(request)) {
      throw new SandboxerError('SBX_INVALID_REQUEST', 'The only upgrade offered is "websocket", by GET.');
    }
    const header = (name: string) => request.headers[name] as string | undefined;
    requireApiVersion({ header });
    const { definition, params: rawParams } = find(request.url ?? '');
    bearerFromProtocol(request);
    const audit = new RequestAudit(services, definition, requestId);
    try {
      await upgrade({ request, socket, head, requestId }, definition, rawParams, audit);
    } catch (error) {
      await audit.failed(error);
      throw error;
    }
  };

  const upgrade = async (
    { request, socket, head, requestId }: UpgradeRequest,
    definition: RouteDefinition,
    rawParams: Record<string, string>,
    audit: RequestAudit,
  ) => {
    const caller = await identify(services, definition, { request }, audit);
    const { params } = readAddress(definition, request.url ?? '', rawParams);
    audit.saw(params, undefined);
    const release = services.slots.take(caller);
    const gone = new AbortController();
    const { signal } = gone;
    const over = services.keyEnds.watch(caller, (reason) => gone.abort(reason));
    socket.once('close', () => {
      release();
      over();
      gone.abort(new ClientGone('The client hung up.'));
    });
    const accept = async (farewell?: Farewell) => {
      await audit.done();
      return new Promise<WebSocket>((resolve, reject) => {
        const hungUp = () => reject(new ClientGone('The client hung up.'));
        if (signal.aborted) return reject(signal.reason);
        if (socket.destroyed) return hungUp();
        // Also after a refused handshake: the caller that waits here has something open inside.
        socket.once('close', hungUp);
        socket.off('error', ignore);
        handshakes.handleUpgrade(request, socket, head, (webSocket) => {
          sockets.add(webSocket);
          webSocket.once('close', () => sockets.delete(webSocket));
          // An error is always followed by `close`, which is the event that all users wait for.
          webSocket.on('error', () => {});
          keepAlive(webSocket);
          watchMessages(webSocket, socket, services.buffers.lease(caller), {
            messageMs: limits.messageMs,
            firstBytes: definition.beginsWithRequest ? limits.firstMessageBytes : null,
          });
          const ended = () => {
            if (signal.reason instanceof ClientGone) return;
            farewell?.(webSocket, signal.reason);
            shut(webSocket, REFUSED, problemOf(signal.reason).code);
          };
          signal.addEventListener('abort', ended, { once: true });
          resolve(webSocket);
        });
      });
    };
    await definition.connect?.({ services, request, requestId, caller, params, signal, accept } as never);
  };

  const ignore = () => {};
  server.on('upgrade', (request: IncomingMessage, stream, head: Buffer) => {
    const socket = stream as Socket;
    const requestId = requestIdOf(request);
    socket.on('error', ignore);
    serve(request, socket, head, requestId).catch((error: unknown) => {
      if (error instanceof ClientGone) return void socket.destroy();
      const problem = problemOf(error);
      if (problem.code === 'SBX_INTERNAL') {
        services.log.error({ err: error, request_id: requestId }, 'a WebSocket failed');
      }
      answerOnSocket(socket, problem, requestId);
    });
  });

  return {
    stop() {
      for (const webSocket of sockets) webSocket.close(GOING_AWAY, 'The server is stopping.');
      setTimeout(() => {
        for (const webSocket of sockets) webSocket.terminate();
      }, LAST_WORDS_MS).unref();
    },
  };
}
