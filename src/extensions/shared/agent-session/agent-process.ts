import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { ExitStatus, Signal, TerminalSize } from '../../../contract/sandboxes/exec.ts';
import type { OutputChunk, OutputGap, SandboxProcess } from '../../../core/ports/session.ts';
import type { AgentChannel, ChannelFrame } from './agent-channel.ts';
import { exitOf } from './exit-status.ts';
import { PayloadReader, PayloadWriter } from './payload.ts';
import { signalNumber } from './signal-numbers.ts';
import { giveBack } from './slab-pool.ts';
import { T } from './wire.ts';

const STREAMS: Readonly<Record<number, OutputChunk['stream']>> = {
  [T.stdout]: 'stdout',
  [T.stderr]: 'stderr',
  [T.terminal]: 'terminal',
};

/** A program at the other end of a channel. */
export class AgentProcess implements SandboxProcess, AsyncIterableIterator<OutputChunk | OutputGap> {
  readonly id: string;
  readonly exit: Promise<ExitStatus>;
  readonly #channel: AgentChannel;
  readonly #exited = Promise.withResolvers<ExitStatus>();
  #offset: number;
  #done = false;

  constructor(id: string, channel: AgentChannel, offset: number) {
    this.id = id;
    this.#channel = channel;
    this.#offset = offset;
    this.exit = this.#exited.promise;
    this.exit.catch(() => {});
    channel.onOver = () => this.#whenOver();
    if (channel.over) this.#whenOver();
  }

  get output(): AsyncIterable<OutputChunk | OutputGap> {
    return this;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<OutputChunk | OutputGap>> {
    if (this.#done) return { done: true, value: undefined };
    try {
      const frame = await this.#channel.next();
      if (frame === null) throw this.#detached();
      const value = this.#read(frame);
      return value === null ? { done: true, value: undefined } : { done: false, value };
    } catch (error) {
      this.#end(error);
      throw error;
    }
  }

  /** Stops reading and lets the program go on: the rest of its output is discarded. */
  async return(): Promise<IteratorResult<OutputChunk | OutputGap>> {
    if (!this.#done) {
      this.#done = true;
      this.#channel.discard();
      if (this.#channel.over) this.#whenOver();
    }
    return { done: true, value: undefined };
  }

  async write(data: Uint8Array): Promise<void> {
    await this.#channel.write(data);
  }

  async endInput(): Promise<void> {
    this.#channel.send(T.eof);
  }

  async kill(signal: Signal): Promise<void> {
    this.#channel.send(T.signal, new PayloadWriter().u8(signalNumber(signal)).bytes());
  }

  async resize({ cols, rows }: TerminalSize): Promise<void> {
    this.#channel.send(T.resize, new PayloadWriter().u16(cols).u16(rows).bytes());
  }

  async detach(): Promise<void> {
    this.#channel.close();
    this.#end(this.#detached());
  }

  #read(frame: ChannelFrame): OutputChunk | OutputGap | null {
    const offset = this.#offset;
    const stream = STREAMS[frame.type];
    if (stream !== undefined) {
      const { data } = frame;
      this.#offset += data.length;
      let done = () => giveBack(data);
      return {
        stream,
        offset,
        data,
        done: () => {
          done();
          done = () => {};
        },
      };
    }
    if (frame.type === T.gap) {
      const missing = this.#channel.reading(() => new PayloadReader(frame.data).u64());
      this.#offset += missing;
      if (!Number.isSafeInteger(this.#offset)) throw this.#channel.violation('a gap is too large');
      return { stream: 'gap', offset, missing };
    }
    if (frame.type === T.error) throw this.#channel.errorOf(frame);
    if (frame.type !== T.exit) throw this.#channel.violation(`frame ${frame.type} came from a process`);
    const exit = this.#channel.reading(() => exitOf(frame.data));
    this.#done = true;
    this.#exited.resolve(exit);
    return null;
  }

  /** With no output left the exit is known at once, whether or not the output is being read. */
  #whenOver(): void {
    if (this.#channel.lost !== null) this.#exited.reject(this.#channel.lost);
    else if (this.#channel.waiting === 1) {
      this.#channel
        .next()
        .then((frame) => frame === null || this.#read(frame))
        .catch((error: unknown) => this.#end(error));
    }
  }

  #end(error: unknown): void {
    this.#done = true;
    this.#exited.reject(error);
  }

  #detached(): SandboxerError {
    return new SandboxerError('SBX_EXTENSION_FAILED', 'The process was detached.');
  }
}
