import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { Agent, request as httpRequest } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ChannelRequest } from './channel.ts';
import { CHANNEL_FRAME, encodeJsonFrame } from './frames.ts';
import type { StubReply, StubRequest } from './protocol.ts';
import type { StubTransport } from './transport.ts';
import { StubConnectionError } from './transport.ts';

export const UPGRADE_PROTOCOL = 'sandboxer-stub';

export interface HttpTransportOptions {
  readonly baseUrl: string;
  /** Path of a socket to connect to instead of the host of `baseUrl`. */
  readonly socketPath?: string;
  readonly key: string;
  /** Longest wait for a reply, long polls apart. */
  readonly timeoutMs?: number;
  readonly maxReplyBytes?: number;
}

const TIMEOUT_MS = 30_000;
const MAX_REPLY_BYTES = 8 * 1_048_576;

/** Rejects with an error that tells whether the request was sent. */
function failureOf(request: ClientRequest): Promise<never> {
  let connected = false;
  request.once('socket', (socket) => {
    if (socket.connecting) socket.once('connect', () => (connected = true));
    else connected = true;
  });
  return new Promise((_, reject) => {
    request.once('error', (cause) => reject(new StubConnectionError(cause.message, connected, { cause })));
  });
}

export class HttpTransport implements StubTransport {
  readonly #options: HttpTransportOptions;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 32 });

  constructor(options: HttpTransportOptions) {
    this.#options = options;
  }

  async call(request: StubRequest, signal: AbortSignal, key?: string): Promise<StubReply> {
    const longPollMs = 'timeout_ms' in request ? request.timeout_ms : 0;
    const late = AbortSignal.timeout((this.#options.timeoutMs ?? TIMEOUT_MS) + longPollMs);
    const body = Buffer.from(JSON.stringify(request));
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    const options = { method: 'POST', headers, signal: AbortSignal.any([signal, late]) };
    const outgoing = this.#request('/v1/call', options, key);
    const failed = failureOf(outgoing);
    const answered = new Promise<IncomingMessage>((resolve) => outgoing.once('response', resolve));
    outgoing.end(body);
    try {
      const response = await Promise.race([answered, failed]);
      return {
        status: response.statusCode ?? 0,
        headers: { 'retry-after': String(response.headers['retry-after'] ?? '') },
        body: await this.#read(response),
      };
    } catch (error) {
      signal.throwIfAborted();
      if (late.aborted)
        throw new StubConnectionError('The stub did not answer in time.', true, { cause: error });
      throw error;
    }
  }

  async open(request: ChannelRequest, signal?: AbortSignal, key?: string): Promise<Duplex> {
    signal?.throwIfAborted();
    const headers = { connection: 'Upgrade', upgrade: UPGRADE_PROTOCOL };
    const options = { headers, agent: false as const, ...(signal ? { signal } : {}) };
    const outgoing = this.#request('/v1/channel', options, key);
    const failed = failureOf(outgoing);
    const refused = new Promise<never>((_, reject) => {
      outgoing.once('response', (response) => {
        response.destroy();
        reject(new StubConnectionError(`The stub answered ${response.statusCode}.`, true));
      });
    });
    const upgraded = new Promise<Duplex>((resolve) => {
      outgoing.once('upgrade', (_, stream, head) => {
        if (head.length > 0) stream.unshift(head);
        resolve(stream);
      });
    });
    outgoing.end();
    const stream = await Promise.race([upgraded, failed, refused]);
    stream.on('error', () => {});
    stream.write(encodeJsonFrame(CHANNEL_FRAME.result, request));
    return stream;
  }

  async close(): Promise<void> {
    this.#agent.destroy();
  }

  #request(path: string, options: RequestOptions, key = this.#options.key): ClientRequest {
    const { baseUrl, socketPath } = this.#options;
    const outgoing = httpRequest(new URL(path, baseUrl), {
      agent: this.#agent,
      ...options,
      ...(socketPath === undefined ? {} : { socketPath }),
      headers: { ...options.headers, authorization: `Bearer ${key}` },
    });
    outgoing.on('error', () => {});
    return outgoing;
  }

  async #read(response: IncomingMessage): Promise<unknown> {
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      for await (const chunk of response) {
        size += chunk.length;
        if (size > (this.#options.maxReplyBytes ?? MAX_REPLY_BYTES))
          throw new Error('The reply is too large.');
        chunks.push(chunk);
      }
      return JSON.parse(Buffer.concat(chunks).toString());
    } catch (cause) {
      throw new StubConnectionError('The reply could not be read.', true, { cause });
    }
  }
}
