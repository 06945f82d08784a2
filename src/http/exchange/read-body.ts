import type { IncomingMessage } from 'node:http';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Exchange } from './exchange.ts';
import { ClientGone } from './exchange.ts';
import { askForBody } from './expected-continue.ts';

const LENGTH = /^\d{1,15}$/;

function tooLarge(limit: number): SandboxerError {
  return new SandboxerError('SBX_PAYLOAD_TOO_LARGE', `The body is larger than ${limit} bytes.`);
}

function tooSlow(): SandboxerError {
  return new SandboxerError('SBX_REQUEST_TIMEOUT', 'The body did not arrive in time.', {
    remedy: 'Send the body without pauses.',
  });
}

/** Returns the length that the request declares of its body; `null` when the body comes in chunks. */
export function declaredLength(request: IncomingMessage): number | null {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  if (encoding !== undefined) return null;
  if (length === undefined) return 0;
  if (!LENGTH.test(length))
    throw new SandboxerError('SBX_INVALID_REQUEST', 'The Content-Length is not a number.');
  return Number(length);
}

export interface BodyBounds {
  readonly bytes: number;
  /** The body is complete within this time. */
  readonly timeoutMs: number;
  /** Looks at each piece before it is kept; what it throws ends the reading. */
  look?(piece: Buffer): void;
}

/** The whole body, bounded in size and time. */
export function readBody(request: IncomingMessage, bounds: BodyBounds): Promise<Buffer> {
  const { bytes: limit, timeoutMs } = bounds;
  const declared = declaredLength(request);
  if (declared !== null && declared > limit) throw tooLarge(limit);
  askForBody(request);
  const chunks: Buffer[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => finish(() => reject(tooSlow())), timeoutMs);
    const finish = (settle: () => void) => {
      clearTimeout(timer);
      request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      settle();
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      try {
        if (size > limit) throw tooLarge(limit);
        bounds.look?.(chunk);
        chunks.push(chunk);
      } catch (error) {
        finish(() => reject(error));
      }
    };
    const onEnd = () =>
      finish(() => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size)));
    const onGone = () => finish(() => reject(new ClientGone('The client hung up.')));
    request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}

async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  work.then(resolve, reject);
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Reads the body as it comes, bounded in size; a client that falls silent in the middle is disconnected. */
export class Upload implements AsyncIterable<Buffer> {
  readonly #request: IncomingMessage;
  readonly #signal: AbortSignal;
  readonly #limit: number;
  readonly #idleMs: number;
  readonly #readings: AsyncGenerator<Buffer>[] = [];
  /** Why reading broke off. The reader may have wrapped this error into its own. */
  failure: Error | null = null;

  /** `signal` breaks it off, with its reason. */
  constructor({ request, signal }: Pick<Exchange, 'request' | 'signal'>, limit: number, idleMs: number) {
    const declared = declaredLength(request);
    if (declared !== null && declared > limit) throw tooLarge(limit);
    this.#request = request;
    this.#signal = signal;
    this.#limit = limit;
    this.#idleMs = idleMs;
  }

  /**
   * Runs `work` with the body. If the body itself failed, that is the error. Reading ends with the work, also when the work
   * stopped in the middle: the rest can then be thrown away, and the client reads its answer.
   */
  async into<T>(work: (body: AsyncIterable<Uint8Array>) => Promise<T>): Promise<T> {
    try {
      return await work(this);
    } catch (error) {
      throw this.failure ?? error;
    } finally {
      for (const reading of this.#readings) void reading.return(undefined).catch(() => {});
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    const reading = this.#read();
    this.#readings.push(reading);
    return reading;
  }

  async *#read(): AsyncGenerator<Buffer> {
    const request = this.#request;
    askForBody(request);
    let size = 0;
    // Only the client's silence counts, not the time that the sandbox takes.
    let waitingSince = performance.now();
    const look = () => {
      if (performance.now() - waitingSince < this.#idleMs) return;
      this.failure = tooSlow();
      request.destroy();
    };
    const timer = setInterval(look, Math.max(10, this.#idleMs / 4));
    const chunks: AsyncIterator<Buffer> = request.iterator({ destroyOnReturn: false });
    try {
      for (;;) {
        const { value, done } = await unlessAborted(this.#signal, chunks.next());
        if (done) break;
        waitingSince = Number.POSITIVE_INFINITY;
        size += value.length;
        if (size > this.#limit) throw tooLarge(this.#limit);
        yield value;
        waitingSince = performance.now();
      }
      if (!request.complete) throw new ClientGone('The client hung up.');
    } catch (error) {
      const known = error instanceof SandboxerError || error instanceof ClientGone;
      this.failure ??= known ? error : new ClientGone('The client hung up.', { cause: error });
      throw this.failure;
    } finally {
      clearInterval(timer);
      void chunks.return?.().catch(() => {});
    }
  }
}
