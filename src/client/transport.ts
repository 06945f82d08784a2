import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { apiErrorFrom } from './api-error.ts';
import { connectionErrorFrom, SandboxerConnectionError } from './connection-error.ts';
import { retryDelayMs } from './retry-policy.ts';
import { sendBody } from './send-body.ts';
import type { ServerAddress } from './server-address.ts';

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Until the answer starts; for answers that are not streams, until it is complete. */
  readonly timeoutMs?: number | undefined;
}

export type Bytes = Uint8Array | AsyncIterable<Uint8Array>;

export interface RequestSpec extends CallOptions {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below the server's address, with its query. */
  readonly path: string;
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly body?: Bytes;
  readonly contentType?: string;
  readonly idempotencyKey?: string | undefined;
}

export interface TransportOptions {
  readonly address: ServerAddress;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  /** Called once per request when nobody was reached; resolves when another try makes sense. */
  readonly onUnreachable?: ((error: SandboxerConnectionError) => Promise<void>) | undefined;
}

const POLITE_METHODS = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);

export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('The request was aborted.', { cause: reason });
}

/** One server over kept-alive connections: sends, retries what may be retried, turns problems into errors. */
export class Transport {
  readonly address: ServerAddress;
  readonly #options: TransportOptions;
  readonly #agent: Agent;
  readonly #request: typeof import('node:http').request;
  readonly #target: RequestOptions;

  constructor(options: TransportOptions) {
    const { address } = options;
    this.address = address;
    this.#options = options;
    // Not by `import`: that evaluates every getter of node:http, one of which loads undici (50 ms). TLS is loaded
    // only where it is spoken.
    const http = process.getBuiltinModule(address.secure ? 'node:https' : 'node:http');
    this.#agent = new http.Agent({ keepAlive: true });
    this.#request = http.request;
    this.#target = {
      agent: this.#agent,
      // Without TLS nobody needs it, and finding it out compiles the regular expression of IPv6 addresses.
      ...(address.secure ? {} : { servername: '' }),
      ...(address.socketPath === null
        ? { hostname: address.hostname, ...(address.port === null ? {} : { port: address.port }) }
        : { socketPath: address.socketPath }),
    };
  }

  /** The parsed body of the answer; `undefined` when there is none. */
  async json<T>(spec: RequestSpec): Promise<T> {
    const { body } = await this.#retrying(spec, () => this.#exchange(spec));
    return (body.length === 0 ? undefined : JSON.parse(body.toString('utf8'))) as T;
  }

  /** The headers of an answer without a body. */
  async head(spec: RequestSpec): Promise<IncomingMessage> {
    return (await this.#retrying(spec, () => this.#exchange(spec))).response;
  }

  /** An answer to be read as it comes. */
  open(spec: RequestSpec): Promise<IncomingMessage> {
    return this.#retrying(spec, () => this.#open(spec));
  }

  /** A request that asks for another protocol; retried only while nobody was reached. */
  upgradeRequest(path: string, headers: Readonly<Record<string, string>>): ClientRequest {
    const { address } = this;
    return this.#request({
      ...this.#target,
      agent: false,
      method: 'GET',
      path: address.prefix + path,
      headers: { ...this.#options.headers, ...headers },
    });
  }

  /** The signal of one call together with the client's own. */
  signalOf(options: CallOptions): AbortSignal | undefined {
    const own = this.#options.signal;
    if (own === undefined || options.signal === undefined) return options.signal ?? own;
    return AbortSignal.any([own, options.signal]);
  }

  timeoutOf(options: CallOptions): number {
    return options.timeoutMs ?? this.#options.timeoutMs;
  }

  async retrying<T>(spec: RequestSpec, attempt: () => Promise<T>): Promise<T> {
    return this.#retrying(spec, attempt);
  }

  close(): void {
    this.#agent.destroy();
  }

  async #retrying<T>(spec: RequestSpec, attempt: () => Promise<T>): Promise<T> {
    const keyed = spec.idempotencyKey !== undefined;
    const repeat = {
      keyed,
      idempotent: POLITE_METHODS.has(spec.method) || keyed,
      replayable: spec.body === undefined || spec.body instanceof Uint8Array,
    };
    let { onUnreachable } = this.#options;
    for (let tries = 1; ; tries += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (onUnreachable && error instanceof SandboxerConnectionError && error.failure === 'unreachable') {
          const revive = onUnreachable;
          onUnreachable = undefined;
          await revive(error);
          continue;
        }
        const delay = retryDelayMs(error, repeat, tries, this.#options.maxRetries);
        if (delay === null) throw error;
        const signal = this.signalOf(spec);
        const { setTimeout: sleep } = process.getBuiltinModule('node:timers/promises');
        await sleep(delay, undefined, signal ? { signal } : {});
      }
    }
  }

  #start(spec: RequestSpec): ClientRequest {
    const { address } = this;
    const headers: Record<string, string | number> = { ...this.#options.headers, ...spec.headers };
    headers.accept = spec.accept ?? 'application/json';
    if (spec.idempotencyKey !== undefined) headers['idempotency-key'] = spec.idempotencyKey;
    const json = spec.json === undefined ? undefined : Buffer.from(JSON.stringify(spec.json));
    const body = json ?? spec.body;
    if (body !== undefined) {
      headers['content-type'] = spec.contentType ?? (json ? 'application/json' : 'application/octet-stream');
    }
    if (body instanceof Uint8Array) headers['content-length'] = body.length;
    const request = this.#request({
      ...this.#target,
      method: spec.method,
      path: address.prefix + spec.path,
      headers,
    });
    if (body === undefined || body instanceof Uint8Array) request.end(body);
    return request;
  }

  /** Runs one request until `take` has what it wants of the answer. */
  #attempt<T>(
    spec: RequestSpec,
    take: (response: IncomingMessage, done: (value: T) => void, fail: (error: Error) => void) => void,
  ): Promise<T> {
    const signal = this.signalOf(spec);
    if (signal?.aborted) return Promise.reject(asError(signal.reason));
    return new Promise<T>((resolve, reject) => {
      const request = this.#start(spec);
      const timeoutMs = this.timeoutOf(spec);
      const onAbort = () => fail(asError(signal?.reason));
      const timer = setTimeout(() => {
        const what = `${this.address.text} did not answer within ${timeoutMs / 1000} s.`;
        fail(new SandboxerConnectionError('timeout', what, true));
      }, timeoutMs);
      let settled = false;
      const fail = (error: Error) => {
        if (settled) {
          request.destroy(error);
          return;
        }
        settled = true;
        clearTimeout(timer);
        reject(error);
        request.destroy();
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      request.once('close', () => signal?.removeEventListener('abort', onAbort));
      request.on('error', (error) => fail(connectionErrorFrom(error, this.address.text)));
      request.once('response', (response) => {
        const done = (value: T) => {
          settled = true;
          clearTimeout(timer);
          resolve(value);
        };
        take(response, done, fail);
      });
      if (spec.body !== undefined && !(spec.body instanceof Uint8Array)) {
        sendBody(request, spec.body).catch(fail);
      }
    });
  }

  #collect(
    response: IncomingMessage,
    done: (exchange: Exchange) => void,
    fail: (error: Error) => void,
  ): void {
    const parts: Buffer[] = [];
    response.on('data', (part: Buffer) => parts.push(part));
    response.on('error', (error) => fail(connectionErrorFrom(error, this.address.text)));
    response.on('end', () => {
      const body = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
      if (isSuccess(response)) return done({ response, body });
      fail(apiErrorFrom(response.statusCode ?? 0, body.toString('utf8'), response.headers['retry-after']));
    });
  }

  #exchange(spec: RequestSpec): Promise<Exchange> {
    return this.#attempt(spec, (response, done, fail) => this.#collect(response, done, fail));
  }

  #open(spec: RequestSpec): Promise<IncomingMessage> {
    return this.#attempt(spec, (response, done, fail) => {
      if (isSuccess(response)) return done(response);
      this.#collect(response, () => {}, fail);
    });
  }
}

interface Exchange {
  readonly response: IncomingMessage;
  readonly body: Buffer;
}

function isSuccess(response: IncomingMessage): boolean {
  const status = response.statusCode ?? 0;
  return status >= 200 && status < 300;
}
