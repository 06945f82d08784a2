import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer, request as httpRequest } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Log } from '../../core/log.ts';
import type { PreviewAccess, PreviewGrant } from './preview-access.ts';
import { forwardedHeaders, returnedHeaders } from './preview-headers.ts';

export interface PreviewOptions {
  readonly access: PreviewAccess;
  readonly log: Log;
  /** The domain whose first label names sandbox and port. */
  readonly domain: string;
  now(): number;
  /** A byte stream to the port; rejects when the sandbox or the port is not there. */
  dial(sandboxUid: string, port: number, signal: AbortSignal): Promise<Duplex>;
}

const TOKEN_PARAMETER = 'sandboxer_token';
const TOKEN_HEADER = 'sandboxer-preview-token';
const COOKIE = 'sandboxer_preview';

interface Admitted {
  readonly grant: PreviewGrant;
  /** Came in the address: it moves to a cookie, so that it is in no history and no referrer. */
  readonly fromAddress: boolean;
}

function labelOf(request: IncomingMessage, domain: string): string | null {
  const host = (request.headers.host ?? '').toLowerCase().replace(/:\d+$/, '');
  return host.endsWith(`.${domain}`) ? host.slice(0, -domain.length - 1) : null;
}

function cookieOf(request: IncomingMessage): string | null {
  for (const part of (request.headers.cookie ?? '').split(';')) {
    const [name, value] = part.trim().split('=');
    if (name === COOKIE && value) return value;
  }
  return null;
}

/** Serves what listens inside sandboxes, each on an origin of its own and never on that of the API. */
export class PreviewServer {
  readonly #options: PreviewOptions;
  readonly server: Server;

  constructor(options: PreviewOptions) {
    this.#options = options;
    this.server = createServer((request, response) => void this.#serve(request, response));
    this.server.on('upgrade', (request, socket, head) => void this.#upgrade(request, socket, head));
    this.server.requestTimeout = 0;
  }

  close(): Promise<void> {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  #admit(request: IncomingMessage): Admitted | { readonly refusal: [number, string] } {
    const { access, domain } = this.#options;
    const label = labelOf(request, domain);
    const named = label === null ? null : access.readLabel(label);
    if (!named) return { refusal: [404, 'There is no preview at this address.'] };
    if (named.public) {
      return this.#expired(named.grant)
        ? { refusal: [410, 'This preview has expired.'] }
        : { grant: named.grant, fromAddress: false };
    }
    const address = new URL(request.url ?? '/', 'http://preview').searchParams.get(TOKEN_PARAMETER);
    const header = request.headers[TOKEN_HEADER];
    const token = address ?? (typeof header === 'string' ? header : cookieOf(request));
    const grant = token === null ? null : access.readToken(token, named.grant);
    if (!grant)
      return { refusal: [401, 'This preview needs its token: open the address that "ports" gave you.'] };
    if (this.#expired(grant)) return { refusal: [410, 'This preview has expired.'] };
    return { grant, fromAddress: address !== null };
  }

  #expired(grant: PreviewGrant): boolean {
    return grant.expiresAt * 1000 <= this.#options.now();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const admitted = this.#admit(request);
    if ('refusal' in admitted) return refuse(response, ...admitted.refusal);
    if (admitted.fromAddress && (request.method === 'GET' || request.method === 'HEAD'))
      return this.#keepToken(request, response, admitted.grant);
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    let stream: Duplex;
    try {
      stream = await this.#options.dial(`sbx_${admitted.grant.sandbox}`, admitted.grant.port, gone.signal);
    } catch {
      return refuse(response, 502, `Nothing answers on port ${admitted.grant.port} of this sandbox.`);
    }
    const outgoing = httpRequest({
      createConnection: () => stream,
      method: request.method ?? 'GET',
      path: request.url ?? '/',
      headers: forwardedHeaders(request, admitted.grant.port, COOKIE, TOKEN_HEADER),
      setHost: false,
    });
    outgoing.on('response', (incoming) => {
      response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, returnedHeaders(incoming));
      incoming.pipe(response);
      incoming.on('error', () => response.destroy());
    });
    outgoing.on('error', () => refuse(response, 502, 'The service inside closed the connection.'));
    response.once('close', () => stream.destroy());
    request.pipe(outgoing);
  }

  /** Into a cookie of this origin alone, and out of the address. */
  #keepToken(request: IncomingMessage, response: ServerResponse, grant: PreviewGrant): void {
    const url = new URL(request.url ?? '/', 'http://preview');
    url.searchParams.delete(TOKEN_PARAMETER);
    const seconds = Math.max(1, grant.expiresAt - Math.floor(this.#options.now() / 1000));
    const token = this.#options.access.token(grant);
    response.writeHead(302, {
      location: `${url.pathname}${url.search}`,
      'set-cookie': `${COOKIE}=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${seconds}`,
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
    });
    response.end();
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy());
    const admitted = this.#admit(request);
    if ('refusal' in admitted)
      return void socket.end(`HTTP/1.1 ${admitted.refusal[0]} Refused\r\nConnection: close\r\n\r\n`);
    const gone = new AbortController();
    socket.once('close', () => gone.abort());
    try {
      const { grant } = admitted;
      const stream = await this.#options.dial(`sbx_${grant.sandbox}`, grant.port, gone.signal);
      const headers = forwardedHeaders(request, grant.port, COOKIE, TOKEN_HEADER);
      const lines = Object.entries({
        ...headers,
        connection: 'Upgrade',
        upgrade: request.headers.upgrade ?? 'websocket',
      });
      const start = [
        `${request.method} ${request.url} HTTP/1.1`,
        ...lines.map(([name, value]) => `${name}: ${value}`),
      ];
      stream.write(`${start.join('\r\n')}\r\n\r\n`);
      if (head.length > 0) stream.write(head);
      stream.on('error', () => socket.destroy());
      socket.pipe(stream).pipe(socket);
      socket.once('close', () => stream.destroy());
    } catch {
      socket.end('HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n');
    }
  }
}

function refuse(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' });
  response.end(`${text}\n`);
}
