import type { IncomingMessage } from 'node:http';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { TargetPolicy } from './target-policy.ts';
import { checkTarget, guardedLookup, hostOf } from './target-policy.ts';

export interface PostOptions {
  readonly policy: TargetPolicy;
  readonly timeoutMs: number;
  readonly connections: number;
}

/** The most bytes that are read of an answer before the connection is closed. */
const MOST_ANSWER_BYTES = 64 * 1024;
const KEEP_ALIVE_MS = 30_000;

class StaleConnection extends Error {}

/** Posts to one address, over connections of its own that it keeps. Redirects are not followed: they are answers. */
export class HttpPoster {
  readonly #url: URL;
  readonly #options: PostOptions;
  readonly #agent: HttpAgent | HttpsAgent;

  /** Throws `SBX_INVALID_REQUEST` for an address that may not be called. */
  constructor(url: string, options: PostOptions) {
    this.#url = checkTarget(url, options.policy);
    this.#options = options;
    const settings = {
      keepAlive: true,
      keepAliveMsecs: KEEP_ALIVE_MS,
      maxSockets: options.connections,
      maxFreeSockets: options.connections,
      lookup: guardedLookup(options.policy),
    };
    this.#agent = this.#url.protocol === 'https:' ? new HttpsAgent(settings) : new HttpAgent(settings);
  }

  /** Posts a body. Returns the status; rejects when there was no answer within the time. */
  async post(body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<number> {
    const { timeoutMs } = this.#options;
    const deadline = AbortSignal.timeout(timeoutMs);
    const until = AbortSignal.any([signal, deadline]);
    try {
      return await this.#send(body, headers, until).catch((error: unknown) => {
        // The receiver closed a kept connection at this moment: that says nothing about its health.
        if (error instanceof StaleConnection) return this.#send(body, headers, until);
        throw error;
      });
    } catch (error) {
      if (deadline.aborted && !signal.aborted) throw new Error(`There was no answer within ${timeoutMs} ms.`);
      throw error;
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<number> {
    const url = this.#url;
    const host = hostOf(url);
    const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const outgoing = request(
        {
          agent: this.#agent,
          method: 'POST',
          host,
          port: url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port),
          path: `${url.pathname}${url.search}`,
          headers: { host: url.host, ...headers, 'content-length': Buffer.byteLength(body) },
          ...(isIP(host) === 0 ? { servername: host } : {}),
          signal,
        },
        (response) => {
          drain(response);
          resolve(response.statusCode ?? 0);
        },
      );
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        const stale = outgoing.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        reject(stale ? new StaleConnection(error.message) : error);
      });
      outgoing.end(body);
    });
  }
}

/** Reads on so that the connection can be used again, within bounds. The request's own deadline ends it in time. */
function drain(response: IncomingMessage): void {
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MOST_ANSWER_BYTES) response.destroy();
  });
  response.on('error', () => {});
}
