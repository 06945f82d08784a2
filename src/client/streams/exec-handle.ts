import type { IncomingMessage } from 'node:http';
import type { ExitStatus, Signal } from '../../contract/sandboxes/exec.ts';
import { connectionErrorFrom, SandboxerConnectionError } from '../transport/connection-error.ts';
import { ExecOutput } from './exec-output.ts';
import type { ExecChunk } from './frames.ts';
import { FrameDecoder } from './frames.ts';
import { piecesOf } from './pieces-of.ts';

const DEFAULT_KEPT_BYTES = 64 * 1_048_576;

export interface ExecChannel {
  /** Answer to the request, in binary frames. */
  open(signal: AbortSignal): Promise<IncomingMessage>;
  kill(processId: string, signal: Signal): Promise<void>;
  readonly address: string;
  /** Offset of the first byte of output. */
  readonly from?: number;
}

export interface ResultOptions {
  /** Kept bytes of each stream; the rest is read and left out, and the output says so. */
  readonly keepBytes?: number;
}

/** Program that was started. Its output can be read once: as a stream of chunks, or as a result. */
export class ExecHandle implements AsyncIterable<ExecChunk> {
  readonly #channel: ExecChannel;
  readonly #chunks: AsyncGenerator<ExecChunk>;
  readonly #first: Promise<IteratorResult<ExecChunk, undefined>>;
  readonly #abort = new AbortController();

  constructor(channel: ExecChannel) {
    this.#channel = channel;
    this.#chunks = this.#read();
    this.#first = this.#chunks.next();
    // A reader or a waiter gets the error; an unused handle must not end the process.
    this.#first.catch(() => {});
  }

  /** Id of the process, once it runs. */
  async started(): Promise<string> {
    const { value } = await this.#first;
    if (value?.type === 'started') return value.process_id;
    throw new SandboxerConnectionError('protocol', 'The output does not begin with the process.', true);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ExecChunk> {
    const first = await this.#first;
    if (first.done) return;
    let ended = false;
    try {
      yield first.value;
      yield* this.#chunks;
      ended = true;
    } finally {
      if (!ended) this.detach();
    }
  }

  /** Returns all output and the exit, when the program has ended. */
  async result(options: ResultOptions = {}): Promise<ExecOutput> {
    const output = new ExecOutput(options.keepBytes ?? DEFAULT_KEPT_BYTES);
    for await (const chunk of this) output.add(chunk);
    return output;
  }

  /** Returns the exit; the output is dropped. */
  async exit(): Promise<ExitStatus> {
    return (await this.result({ keepBytes: 0 })).exit;
  }

  /** Sends a signal to the whole process tree. */
  async kill(signal: Signal = 'SIGTERM'): Promise<void> {
    await this.#channel.kill(await this.started(), signal);
  }

  /** Stops reading. A process in the foreground is killed by that; one in the background runs on. */
  detach(): void {
    this.#abort.abort(new Error('The output is no longer read.'));
  }

  async *#read(): AsyncGenerator<ExecChunk, undefined> {
    const decoder = new FrameDecoder(this.#channel.from ?? 0);
    const response = await this.#channel.open(this.#abort.signal);
    let ended = false;
    try {
      for await (const bytes of piecesOf(response)) {
        for (const chunk of decoder.decode(bytes)) {
          if (chunk.type === 'exit') ended = true;
          yield chunk;
        }
      }
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ECONNRESET') {
        throw connectionErrorFrom(error, this.#channel.address);
      }
      throw error;
    }
    if (!ended) {
      throw new SandboxerConnectionError('lost', 'The output ended before the program did.', true);
    }
    return undefined;
  }
}
