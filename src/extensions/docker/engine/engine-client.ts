/**
 * Client of the Docker Engine API over one endpoint. An engine is trusted with sandboxes, not with the server's memory or time:
 * every answer has a limit in bytes and in time, and is read through a schema.
 */
import type { IncomingMessage, RequestOptions } from 'node:http';
import { Agent, request } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { EngineConnector } from './engine-connector.ts';
import { EngineError, EngineUnreachable } from './engine-error.ts';

/** Docker 20.10, Podman 4. */
export const OLDEST_API = '1.41';
const NEWEST_API = '1.47';
const ANSWER_BYTES = 16 * 1_048_576;
const TIMEOUT_MS = 30_000;
const MOST_CONNECTIONS = 64;

export interface CallOptions {
  readonly query?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: unknown;
  /** Body that is sent unchanged, instead of `body`. */
  readonly stream?: AsyncIterable<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

class EngineConnections extends Agent {
  readonly #connector: EngineConnector;

  constructor(connector: EngineConnector) {
    super({ keepAlive: true, maxSockets: MOST_CONNECTIONS, scheduling: 'lifo' });
    this.#connector = connector;
  }

  override createConnection(_options: unknown, done?: (error: Error | null, stream: Duplex) => void) {
    this.#connector.open().then(
      (stream) => done?.(null, stream),
      (error: Error) => done?.(error, undefined as never),
    );
    return undefined;
  }
}

function older(a: string, b: string): boolean {
  const [aMajor = 0, aMinor = 0] = a.split('.').map(Number);
  const [bMajor = 0, bMinor = 0] = b.split('.').map(Number);
  return aMajor < bMajor || (aMajor === bMajor && aMinor < bMinor);
}

const ErrorBody = z.object({ message: z.string() });

export class EngineClient {
  readonly #connector: EngineConnector;
  readonly #connections: EngineConnections;
  readonly #timeoutMs: number;
  #version: Promise<string> | null = null;
  #podman = false;

  constructor(connector: EngineConnector, options: { readonly timeoutMs?: number } = {}) {
    this.#connector = connector;
    this.#connections = new EngineConnections(connector);
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  }

  /** Returns the version of the API that both sides speak; queried once. */
  async apiVersion(signal?: AbortSignal): Promise<string> {
    this.#version ??= this.#negotiate(signal);
    const version = this.#version;
    return await version.catch((error: unknown) => {
      if (this.#version === version) this.#version = null;
      throw error;
    });
  }

  async call<T>(schema: z.ZodType<T>, method: string, path: string, options: CallOptions = {}): Promise<T> {
    const answer = await this.#open(method, path, options);
    const text = await this.#text(answer, options);
    return parsed(schema, text);
  }

  /** Sends a request whose answer has no content of use. */
  async send(method: string, path: string, options: CallOptions = {}): Promise<void> {
    await this.#text(await this.#open(method, path, options), options);
  }

  /** Returns the answer as a stream; the caller reads it to its end or destroys it. */
  async stream(method: string, path: string, options: CallOptions = {}): Promise<IncomingMessage> {
    return await this.#open(method, path, options);
  }

  /** Returns the connection itself, once the engine has agreed to hand it over. */
  async hijack(path: string, body: unknown, options: CallOptions = {}): Promise<Duplex> {
    const headers = { connection: 'Upgrade', upgrade: 'tcp' };
    const prefix = `/v${await this.apiVersion(options.signal)}`;
    const upgraded = Promise.withResolvers<Duplex>();
    const answer = this.#request('POST', prefix + path, { ...options, body, headers }, (stream, head) => {
      if (head.length > 0) stream.unshift(head);
      upgraded.resolve(stream);
    });
    answer.then(
      async (refused) => upgraded.reject(await errorOf(refused, await this.#text(refused, options))),
      (error: unknown) => upgraded.reject(error),
    );
    return await upgraded.promise;
  }

  /** Whether the engine is Podman; known after the first request. */
  get isPodman(): boolean {
    return this.#podman;
  }

  async close(): Promise<void> {
    this.#connections.destroy();
    await this.#connector.close();
  }

  async #negotiate(signal?: AbortSignal): Promise<string> {
    const options = signal === undefined ? {} : { signal };
    const answer = await this.#request('GET', '/_ping', options);
    const said = answer.headers['api-version'];
    this.#podman = answer.headers['libpod-api-version'] !== undefined;
    const text = await this.#text(answer, options);
    if (answer.statusCode !== 200) throw await errorOf(answer, text);
    if (typeof said !== 'string' || !/^\d{1,3}\.\d{1,3}$/.test(said)) {
      throw new EngineUnreachable('garbled', 'What listens there is not a Docker engine.');
    }
    return older(said, NEWEST_API) ? said : NEWEST_API;
  }

  async #open(method: string, path: string, options: CallOptions): Promise<IncomingMessage> {
    const prefix = `/v${await this.apiVersion(options.signal)}`;
    const answer = await this.#request(method, prefix + path, options);
    const status = answer.statusCode ?? 0;
    if (status >= 200 && status < 400) return answer;
    throw await errorOf(answer, await this.#text(answer, options));
  }

  async #request(
    method: string,
    path: string,
    { query, body, stream, headers, signal, timeoutMs }: CallOptions,
    upgraded?: (stream: Duplex, head: Buffer) => void,
  ): Promise<IncomingMessage> {
    if (signal?.aborted) throw new EngineUnreachable('aborted', 'It was given up before it began.');
    const search = query === undefined ? '' : `?${searchOf(query)}`;
    const payload = body === undefined ? null : Buffer.from(JSON.stringify(body));
    const options: RequestOptions = {
      agent: this.#connections,
      method,
      path: path + search,
      headers: {
        host: 'docker',
        ...(payload === null
          ? {}
          : { 'content-type': 'application/json', 'content-length': String(payload.length) }),
        ...(stream === undefined ? {} : { 'content-type': 'application/x-tar' }),
        ...headers,
      },
    };
    const answered = Promise.withResolvers<IncomingMessage>();
    const outgoing = request(options);
    const limit = timeoutMs ?? this.#timeoutMs;
    const timer = setTimeout(() => {
      outgoing.destroy();
      answered.reject(new EngineUnreachable('timeout', `The engine did not answer within ${limit} ms.`));
    }, limit);
    const abort = () => {
      outgoing.destroy();
      answered.reject(new EngineUnreachable('aborted', 'It was given up before the engine answered.'));
    };
    signal?.addEventListener('abort', abort, { once: true });
    outgoing.on('response', (answer) => answered.resolve(answer));
    outgoing.on('upgrade', (_answer, socket, head) => {
      clearTimeout(timer);
      upgraded?.(socket, head);
    });
    outgoing.on('error', (error: NodeJS.ErrnoException) => answered.reject(unreachable(error)));
    if (stream === undefined) outgoing.end(payload);
    else
      pour(stream, outgoing).catch((error: unknown) => {
        outgoing.destroy();
        answered.reject(error);
      });
    try {
      return await answered.promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  async #text(answer: IncomingMessage, { signal, timeoutMs }: CallOptions): Promise<string> {
    const done = new AbortController();
    const limit = timeoutMs ?? this.#timeoutMs;
    const late = sleep(limit, 'late' as const, { signal: done.signal, ref: false }).catch(() => null);
    const stop = () => answer.destroy();
    signal?.addEventListener('abort', stop, { once: true });
    void late.then((why) => why === 'late' && answer.destroy());
    const parts: Buffer[] = [];
    let size = 0;
    try {
      for await (const part of answer as AsyncIterable<Buffer>) {
        size += part.length;
        if (size > ANSWER_BYTES) throw new EngineUnreachable('garbled', 'The engine’s answer is too long.');
        parts.push(part);
      }
      return Buffer.concat(parts).toString('utf8');
    } catch (error) {
      answer.destroy();
      if (error instanceof EngineUnreachable) throw error;
      if (signal?.aborted) throw new EngineUnreachable('aborted', 'It was given up.');
      throw new EngineUnreachable('closed', 'The engine broke off its answer.');
    } finally {
      done.abort();
      signal?.removeEventListener('abort', stop);
    }
  }
}

function searchOf(query: NonNullable<CallOptions['query']>): URLSearchParams {
  return new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      [value].flat().map((one) => [name, one] as [string, string]),
    ),
  );
}

async function pour(
  from: AsyncIterable<Uint8Array>,
  to: NodeJS.WritableStream & { destroyed?: boolean },
): Promise<void> {
  for await (const part of from) {
    if (to.destroyed) return;
    if (!to.write(part)) {
      await new Promise<void>((resolve) => {
        to.once('drain', resolve);
        to.once('close', resolve);
      });
    }
  }
  to.end();
}

function unreachable(error: NodeJS.ErrnoException): EngineUnreachable {
  if (error instanceof EngineUnreachable) return error;
  const code = error.code ?? null;
  if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'EACCES' || code === 'EPERM') {
    return new EngineUnreachable('refused', `The engine cannot be reached: ${error.message}`, code);
  }
  const garbled = code?.startsWith('HPE_') ?? false;
  const text = garbled ? 'What listens there does not speak HTTP.' : `The engine was lost: ${error.message}`;
  return new EngineUnreachable(garbled ? 'garbled' : 'closed', text, code);
}

function parsed<T>(schema: z.ZodType<T>, text: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new EngineUnreachable('garbled', 'The engine’s answer is not JSON.');
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new EngineUnreachable(
    'garbled',
    `The engine’s answer is not understood: ${issue?.path.join('.')}: ${issue?.message}`,
  );
}

async function errorOf(answer: IncomingMessage, text: string): Promise<EngineError> {
  let message = text;
  try {
    message = ErrorBody.parse(JSON.parse(text)).message;
  } catch {
    // A proxy in between may answer unlike the engine.
  }
  return new EngineError(answer.statusCode ?? 0, message || 'no reason given');
}

export function isTooOld(version: string): boolean {
  return older(version, OLDEST_API);
}
