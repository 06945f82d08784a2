import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { apiErrorFrom } from './api-error.ts';
import { connectionErrorFrom, SandboxerConnectionError } from './connection-error.ts';
import type { Answer } from './plain-exchange.ts';
import { plainExchange } from './plain-exchange.ts';
import { retryDelayMs } from './retry-policy.ts';
import { sendBody } from './send-body.ts';
import type { ServerAddress } from './server-address.ts';

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Time until the answer starts; for answers that are not streams, until it is complete. */
  readonly timeoutMs?: number | undefined;
}

export type Bytes = Uint8Array | AsyncIterable<Uint8Array>;

export interface RequestSpec extends CallOptions {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path below the server's address, with its query. */
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
  /** For one or two requests: a connection for each answer costs less than keeping connections alive. */
  readonly brief: boolean;
  /** Called once per request when no server was reached; resolves when another try makes sense. */
  readonly onUnreachable?: ((error: SandboxerConnectionError) => Promise<void>) | undefined;
}

const POLITE_METHODS = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);

export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('The request was aborted.', { cause: reason });
}

/** Client of one server over kept-alive connections: sends, retries retryable requests, turns problems into errors. */
export class Transport {
  readonly address: ServerAddress;
  readonly #options: TransportOptions;
  #http: Http | null = null;
  #agent: Agent | null = null;

  constructor(options: TransportOptions) {
    this.address = options.address;
    this.#options = options;
  }

  /** Returns the parsed body of the answer; `undefined` when it is empty. */
  async json<T>(spec: RequestSpec): Promise<T> {
    const { body } = await this.#retrying(spec, () => this.#exchange(spec));
    return (body.length === 0 ? undefined : JSON.parse(body.toString('utf8'))) as T;
  }

  /** Returns an answer that is read as it comes. */
  open(spec: RequestSpec): Promise<IncomingMessage> {
    return this.#retrying(spec, () => this.#open(spec));
  }

  /** Opens a request for another protocol; retried only while no server was reached. */
  upgradeRequest(path: string, headers: Readonly<Record<string, string>>): ClientRequest {
    const { address } = this;
    const { request, target } = this.#openHttp();
    return request({
      ...target,
      agent: false,
      method: 'GET',
      path: address.prefix + path,
      headers: { ...this.#options.headers, ...headers },
    });
  }

  /** Returns the signal of one call together with the client's own. */
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
    this.#agent?.destroy();
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
        const delay = retryDelayMs(error, repeat, { tries, maxRetries: this.#options.maxRetries });
        if (delay === null) throw error;
        const signal = this.signalOf(spec);
        const { setTimeout: sleep } = process.getBuiltinModule('node:timers/promises');
        await sleep(delay, undefined, signal ? { signal } : {});
      }
    }
  }

  #openHttp(): Http {
    if (this.#http === null) {
      const { address } = this;
      // Not by `import`: that evaluates every getter of node:http, one of which loads undici (50 ms). TLS is loaded
      // only where it is spoken.
      const http = process.getBuiltinModule(address.secure ? 'node:https' : 'node:http');
      this.#agent = new http.Agent({ keepAlive: true });
      const target = {
        agent: this.#agent,
        // A server name is not needed without TLS, and finding it compiles the regular expression of IPv6 addresses.
        ...(address.secure ? {} : { servername: '' }),
        ...(address.socketPath === null
          ? { hostname: address.hostname, ...(address.port === null ? {} : { port: address.port }) }
          : { socketPath: address.socketPath }),
      };
      this.#http = { request: http.request, target };
    }
    return this.#http;
  }

  #messageOf(spec: RequestSpec): Message {
    const headers: Record<string, string | number> = { ...this.#options.headers, ...spec.headers };
    headers.accept = spec.accept ?? 'application/json';
    if (spec.idempotencyKey !== undefined) headers['idempotency-key'] = spec.idempotencyKey;
    const json = spec.json === undefined ? undefined : Buffer.from(JSON.stringify(spec.json));
    const body = json ?? spec.body;
    if (body !== undefined) {
      headers['content-type'] = spec.contentType ?? (json ? 'application/json' : 'application/octet-stream');
    }
    if (body instanceof Uint8Array) headers['content-length'] = body.length;
    return { method: spec.method, path: this.address.prefix + spec.path, headers, body };
  }

  #start({ body, ...message }: Message): ClientRequest {
    const { request, target } = this.#openHttp();
    const started = request({ ...target, ...message });
    if (body === undefined || body instanceof Uint8Array) started.end(body);
    return started;
  }

  /** Runs one request until `begin` has taken the answer. */
  #attempt<T>(
    spec: RequestSpec,
    begin: (done: (value: T) => void, fail: (error: Error) => void) => Started,
  ): Promise<T> {
    const signal = this.signalOf(spec);
    if (signal?.aborted) return Promise.reject(asError(signal.reason));
    return new Promise<T>((resolve, reject) => {
      const timeoutMs = this.timeoutOf(spec);
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
      const done = (value: T) => {
        settled = true;
        clearTimeout(timer);
        resolve(value);
      };
      const request = begin(done, fail);
      const onAbort = () => fail(asError(signal?.reason));
      const timer = setTimeout(() => {
        const what = `${this.address.text} did not answer within ${timeoutMs / 1000} s.`;
        fail(new SandboxerConnectionError('timeout', what, true));
      }, timeoutMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      request.once('close', () => signal?.removeEventListener('abort', onAbort));
    });
  }

  #respond(
    spec: RequestSpec,
    fail: (error: Error) => void,
    take: (response: IncomingMessage) => void,
  ): ClientRequest {
    const request = this.#start(this.#messageOf(spec));
    request.on('error', (error) => fail(connectionErrorFrom(error, this.address.text)));
    request.once('response', take);
    if (spec.body !== undefined && !(spec.body instanceof Uint8Array)) {
      sendBody(request, spec.body).catch(fail);
    }
    return request;
  }

  #collect(response: IncomingMessage, done: (answer: Answer) => void, fail: (error: Error) => void): void {
    const parts: Buffer[] = [];
    response.on('data', (part: Buffer) => parts.push(part));
    response.on('error', (error) => fail(connectionErrorFrom(error, this.address.text)));
    response.on('end', () => {
      const body = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
      done({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'], body });
    });
  }

  #exchange(spec: RequestSpec): Promise<Answer> {
    return this.#attempt(spec, (resolve, fail) => {
      const done = (answer: Answer) => {
        if (isSuccess(answer.status)) resolve(answer);
        else fail(apiErrorFrom(answer.status, answer.body.toString('utf8'), answer.retryAfter));
      };
      const { socketPath } = this.address;
      const { body, ...message } = this.#messageOf(spec);
      if (this.#options.brief && socketPath !== null && (body === undefined || body instanceof Uint8Array)) {
        const broken = (error: Error) => fail(connectionErrorFrom(error, this.address.text));
        return plainExchange({ ...message, body, socketPath }, done, broken);
      }
      return this.#respond(spec, fail, (response) => this.#collect(response, done, fail));
    });
  }

  #open(spec: RequestSpec): Promise<IncomingMessage> {
    return this.#attempt(spec, (done, fail) =>
      this.#respond(spec, fail, (response) => {
        if (isSuccess(response.statusCode ?? 0)) return done(response);
        this.#collect(
          response,
          ({ status, retryAfter, body }) => fail(apiErrorFrom(status, body.toString('utf8'), retryAfter)),
          fail,
        );
      }),
    );
  }
}

interface Http {
  readonly request: typeof import('node:http').request;
  readonly target: RequestOptions;
}

interface Message {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Bytes | undefined;
}

interface Started {
  destroy(error?: Error): void;
  once(event: 'close', listener: () => void): unknown;
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
