import type { IncomingMessage, ServerResponse } from 'node:http';
import { SandboxerError, toProblem } from '../../contract/errors/errors.ts';
import { API_VERSION, API_VERSION_HEADER } from '../../contract/values/version.ts';
import type { BufferLease } from '../bounds/buffer-budget.ts';
import { isLarge, jsonPieces } from '../bounds/json-pieces.ts';
import { closeIfUnasked, endAnswer } from './discard-rest.ts';

/** The client hung up: no answer can be sent, and no party is at fault. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** A connection that does not close after its key ended is cut after this time. */
const LAST_WORDS_MS = 1_000;

/** Ends the producer of the body: the request asked for the head alone, and that is sent. */
class HeadAnswered extends ClientGone {}

export const API_VERSION_TEXT = String(API_VERSION);
const JSON_TYPE = 'application/json; charset=utf-8';
export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/** Serves one request with its answer. */
export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly id: string;
  readonly startedAt = performance.now();
  /** The memory that this exchange makes the server hold, once its caller is known. */
  buffered: BufferLease | null = null;
  readonly #open: Set<Exchange>;
  #abort: AbortController | null = null;
  #ended: SandboxerError | null = null;
  #status = 0;
  #answered = false;

  /** `open`: the exchanges that are notified when the server stops. */
  constructor(request: IncomingMessage, response: ServerResponse, id: string, open: Set<Exchange>) {
    this.request = request;
    this.response = response;
    this.id = id;
    this.#open = open;
  }

  get status(): number {
    return this.#status;
  }

  /** Whether the whole answer was written, also when the rest of the request is still read. */
  get isAnswered(): boolean {
    return this.#answered;
  }

  /** Aborts when the client is gone or the server stops. */
  get signal(): AbortSignal {
    if (this.#abort) return this.#abort.signal;
    const abort = new AbortController();
    this.#abort = abort;
    this.#open.add(this);
    const { response } = this;
    response.once('close', () => {
      this.#open.delete(this);
      if (!response.writableFinished) abort.abort(new ClientGone('The client hung up.'));
    });
    if (response.destroyed) abort.abort(new ClientGone('The client hung up.'));
    if (this.#ended) abort.abort(this.#ended);
    if (this.headIsAll) abort.abort(new HeadAnswered());
    return abort.signal;
  }

  /** The server stops: whatever waits in this exchange ends now. */
  stop(): void {
    this.#abort?.abort(new SandboxerError('SBX_UNAVAILABLE', 'The server is stopping.'));
  }

  /**
   * Ends the exchange because the key of the request has ended: a wait or a stream ends now, with the reason where it can be
   * sent.
   */
  end(reason: SandboxerError): void {
    const { response } = this;
    if (response.writableEnded || response.destroyed) return;
    this.#ended = reason;
    this.#abort?.abort(reason);
    const cut = () => {
      if (!response.writableEnded) response.destroy();
    };
    setTimeout(cut, LAST_WORDS_MS).unref();
  }

  header(name: string): string | undefined {
    const value = this.request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  }

  /** Sends a large body in pieces, as fast as the client reads: its text never exists as a whole. */
  async sendJson(status: number, body: unknown, headers?: Readonly<Record<string, string>>): Promise<void> {
    if (!isLarge(body)) return this.#send(status, JSON_TYPE, JSON.stringify(body), headers);
    if (this.request.method === 'HEAD')
      return this.sendEmpty(status, { 'content-type': JSON_TYPE, ...headers });
    this.begin(status, { 'content-type': JSON_TYPE, ...headers });
    for (const piece of jsonPieces(body)) await this.write(piece);
    this.#finish();
  }

  sendText(status: number, mediaType: string, text: string): void {
    this.#send(status, mediaType, text);
  }

  sendEmpty(status: number, headers?: Readonly<Record<string, string | number>>): void {
    this.#writeHead(status, headers);
    this.#finish();
  }

  /** Sends the problem alone, whatever was prepared before. A stream that has begun can only be cut. */
  sendProblem(error: SandboxerError, headers: Readonly<Record<string, string>> = {}): void {
    if (this.response.headersSent) {
      this.response.destroy();
      return;
    }
    const { retryAfterSeconds } = error.extras;
    this.#send(error.status, PROBLEM_MEDIA_TYPE, JSON.stringify(toProblem(error, this.id)), {
      ...headers,
      ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterSeconds)) }),
      ...(error.code === 'SBX_UNAUTHENTICATED' ? { 'www-authenticate': 'Bearer realm="sand-boxer"' } : {}),
    });
  }

  /** Writes the head. The body follows by `write` and `end`, unless the head is all that was asked for. */
  begin(status: number, headers?: Readonly<Record<string, string | number>>): void {
    this.#writeHead(status, headers);
    if (this.headIsAll) this.#abort?.abort(new HeadAnswered());
  }

  /** Ends an answer that the client no longer reads: cuts it, unless only the head was asked for and sent. */
  leave(): void {
    if (this.headIsAll) this.response.end();
    else this.response.destroy();
  }

  /** The head was all that was asked for, and it is sent. */
  get headIsAll(): boolean {
    return this.request.method === 'HEAD' && this.response.headersSent;
  }

  #writeHead(status: number, headers: Readonly<Record<string, string | number>> = {}): void {
    this.#status = status;
    closeIfUnasked(this.request, this.response);
    this.response.writeHead(status, {
      'x-request-id': this.id,
      [API_VERSION_HEADER]: API_VERSION_TEXT,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      ...headers,
    });
  }

  /** Resolves when there is room for more; rejects once the client has stopped reading. */
  async write(chunk: Uint8Array | string): Promise<void> {
    if (this.response.destroyed) throw new ClientGone('The client hung up.');
    if (this.headIsAll) throw new HeadAnswered();
    if (this.#ended) throw this.#ended;
    if (!this.response.write(chunk)) await this.drained();
  }

  async drained(): Promise<void> {
    const { response } = this;
    if (response.destroyed) throw new ClientGone('The client hung up.');
    if (!response.writableNeedDrain) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onClose = () => reject(new ClientGone('The client hung up.'));
    response.once('drain', resolve);
    response.once('close', onClose);
    try {
      await promise;
    } finally {
      response.off('drain', resolve);
      response.off('close', onClose);
    }
  }

  #send(status: number, mediaType: string, text: string, headers?: Readonly<Record<string, string>>): void {
    this.#writeHead(status, {
      'content-type': mediaType,
      'content-length': Buffer.byteLength(text),
      ...headers,
    });
    this.#finish(this.request.method === 'HEAD' ? undefined : text);
  }

  #finish(text?: string): void {
    // The rest of a body that still arrives is thrown away.
    if (!this.request.complete) this.buffered?.release();
    this.#answered = true;
    endAnswer(this.request, this.response, text);
  }
}
