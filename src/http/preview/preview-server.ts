import type { IncomingMessage, Server } from 'node:http';
import { createServer, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Log } from '../../core/ports/log.ts';
import { holdContinue } from '../exchange/expected-continue.ts';
import { atTime } from '../keys/at-time.ts';
import type { KeyEnds } from '../keys/key-ends.ts';
import { requireClearHead } from '../parse/message-head.ts';
import { problemOf } from '../present/problem-of.ts';
import type { PreviewAccess, PreviewGrant } from './preview-access.ts';
import { PreviewCookie } from './preview-cookie.ts';
import type { Admitted } from './preview-gate.ts';
import { isPartOfPage, PreviewGate } from './preview-gate.ts';
import { refuse } from './preview-refusal.ts';
import { PreviewSlots } from './preview-slots.ts';
import { sameHost } from './preview-target.ts';
import { relayRequest, relayUpgrade, unanswered } from './relay.ts';

export interface PreviewOptions {
  readonly access: PreviewAccess;
  readonly log: Log;
  /** The domain whose first label names sandbox and port. */
  readonly domain: string;
  /** Visitors come over https. */
  readonly secure: boolean;
  now(): number;
  /** Ends visits together with the key that their preview was made with. */
  readonly keyEnds: Pick<KeyEnds, 'numbered' | 'watch'>;
  /** A byte stream to the port; rejects when the sandbox or the port is not there. */
  dial(sandboxUid: string, port: number, signal: AbortSignal): Promise<Duplex>;
}

/** The most visits of one preview at the same time. */
const MOST_VISITS = 512;
const MOST_CONNECTIONS = 4096;
/** Requests that wait on one connection for those before them. */
const MOST_PIPELINED = 32;
/** The time after which a visitor's vanished machine is noticed. */
const KEEP_ALIVE_MS = 60_000;

/** An upgrade that brings a body, or leads to another HTTP, is a request like any other. */
function wantsUpgrade({ method, headers }: IncomingMessage): boolean {
  const body = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
  return method === 'GET' && !body && !/^\s*(?:h2c|tls\/)/i.test(headers.upgrade ?? '');
}

interface Turns {
  last: Promise<void>;
  waiting: number;
}

/** Serves the ports inside sandboxes, each on an origin of its own and never on that of the API. */
export class PreviewServer {
  readonly #options: PreviewOptions;
  readonly #cookie: PreviewCookie;
  readonly #gate: PreviewGate;
  readonly #slots = new PreviewSlots(MOST_VISITS);
  readonly #turns = new WeakMap<Socket, Turns>();
  readonly #upgraded = new Set<Socket>();
  readonly server: Server;

  constructor(options: PreviewOptions) {
    this.#options = options;
    this.#cookie = new PreviewCookie(options.secure);
    this.#gate = new PreviewGate({ ...options, cookie: this.#cookie });
    this.server = createServer({
      shouldUpgradeCallback: wantsUpgrade,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      insecureHTTPParser: false,
      // Uploads take as long as they take.
      requestTimeout: 0,
    });
    this.server.maxConnections = MOST_CONNECTIONS;
    holdContinue(this.server);
    this.server.on('request', (request, response) => this.#inTurn(request, response));
    this.server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket as Socket, head));
  }

  close(): Promise<void> {
    this.server.closeAllConnections();
    for (const socket of this.#upgraded) socket.destroy();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  /** Requests of one connection are answered in order: each is passed on when the one before is over. */
  #inTurn(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const turns = this.#turns.get(socket) ?? { last: Promise.resolve(), waiting: 0 };
    this.#turns.set(socket, turns);
    if (turns.waiting > MOST_PIPELINED) return void socket.destroy();
    turns.waiting += 1;
    const over = new Promise<void>((resolve) => void response.once('close', resolve));
    turns.last = turns.last.then(async () => {
      if (socket.destroyed) return;
      await this.#visit(request, response, null);
      await over;
      turns.waiting -= 1;
    });
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    // The answer to a request before it is still on its way: an upgrade needs a connection of its own.
    if ((this.#turns.get(socket)?.waiting ?? 0) > 0) return void socket.destroy();
    this.#upgraded.add(socket);
    socket.once('close', () => this.#upgraded.delete(socket));
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => socket.destroySoon());
    void this.#visit(request, response, { socket, head });
  }

  /** Serves one request. Never rejects: an error becomes the answer. */
  async #visit(
    request: IncomingMessage,
    response: ServerResponse,
    upgrade: { readonly socket: Socket; readonly head: Buffer } | null,
  ): Promise<void> {
    try {
      requireClearHead(request);
      const admitted = this.#gate.admit(request);
      const visitor = upgrade?.socket ?? response;
      await this.#endWithKey(admitted.grant, visitor);
      const reads = request.method === 'GET' || request.method === 'HEAD';
      const keeps = admitted.fromAddress && reads && !upgrade && !isPartOfPage(request);
      if (keeps) return this.#keepToken(response, admitted);
      const stream = await this.#reach(admitted.grant, visitor);
      const inside = {
        port: admitted.grant.port,
        host: admitted.target.host,
        secure: this.#options.secure,
      };
      const visit = { request, response, path: admitted.target.path, inside, stream };
      if (upgrade) relayUpgrade(visit, upgrade.socket, upgrade.head);
      else relayRequest(visit);
    } catch (error) {
      const problem = problemOf(error);
      if (problem.code === 'SBX_INTERNAL') this.#options.log.error({ err: error }, 'a preview failed');
      refuse(request, response, problem);
    }
  }

  /** The visit ends with the key that the preview was made with. */
  async #endWithKey({ keyNumber }: PreviewGrant, visitor: Socket | ServerResponse): Promise<void> {
    if (keyNumber === 0) return;
    const { keyEnds } = this.#options;
    try {
      const holder = await keyEnds.numbered(keyNumber);
      const over = keyEnds.watch(holder, () => visitor.destroy());
      if (visitor.destroyed) over();
      else visitor.once('close', over);
    } catch (error) {
      if (problemOf(error).status >= 500) throw error;
      throw new SandboxerError(
        'SBX_PREVIEW_EXPIRED',
        'This preview has ended with the key it was made with.',
      );
    }
  }

  /** A connection inside. It ends with the visitor's own, which ends with the grant. */
  async #reach(grant: PreviewGrant, visitor: Socket | ServerResponse): Promise<Duplex> {
    const { dial, now } = this.#options;
    const gone = new AbortController();
    const release = this.#slots.take(`${grant.sandbox}:${grant.port}`);
    const forget = atTime(now, grant.expiresAt * 1000, () => visitor.destroy());
    visitor.once('close', () => {
      release();
      forget();
      gone.abort();
    });
    const stream = await dial(`sbx_${grant.sandbox}`, grant.port, gone.signal).catch((error: unknown) => {
      throw unreachable(grant.port, error);
    });
    // The user of the stream learns of its end by other events, too.
    stream.on('error', () => {});
    if (visitor.destroyed) stream.destroy();
    else visitor.once('close', () => stream.destroy());
    return stream;
  }

  /** Moves the token into a cookie of this origin alone, and out of the address. */
  #keepToken(response: ServerResponse, { grant, target }: Admitted): void {
    const seconds = Math.max(1, grant.expiresAt - Math.floor(this.#options.now() / 1000));
    response.writeHead(302, {
      location: sameHost(target.path),
      'set-cookie': this.#cookie.keep(this.#options.access.token(grant), seconds),
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
    });
    response.end();
  }
}

/** Makes the error for a visitor. It never names the sandbox: the preview may be public. */
function unreachable(port: number, error: unknown): SandboxerError {
  const code = error instanceof SandboxerError ? error.code : null;
  if (code === 'SBX_GONE')
    return new SandboxerError('SBX_GONE', 'The sandbox of this preview is no longer there.', {
      cause: error,
    });
  if (code === 'SBX_INVALID_STATE')
    return new SandboxerError('SBX_UNAVAILABLE', 'The sandbox of this preview does not run now.', {
      cause: error,
      remedy: 'Resume the sandbox, or wait until it is ready.',
    });
  return unanswered(`Nothing answers on port ${port} of this sandbox.`, error);
}
