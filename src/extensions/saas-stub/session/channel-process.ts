import { z } from 'zod';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Signal, TerminalSize } from '../../../contract/sandboxes/exec.ts';
import { ExitStatus } from '../../../contract/sandboxes/exec.ts';
import type { OutputChunk, OutputGap, SandboxProcess } from '../../../core/ports/session.ts';
import { CHANNEL_FRAME } from '../wire/frames.ts';
import type { ChannelClient } from './channel-client.ts';

const Gap = z.strictObject({ missing: z.number().int().min(0) });
const NOTHING = new Uint8Array(0);

/** A process at the other end of a channel. */
export class ChannelProcess implements SandboxProcess {
  readonly id: string;
  readonly output: AsyncIterable<OutputChunk | OutputGap>;
  readonly exit: Promise<ExitStatus>;
  readonly #channel: ChannelClient;
  readonly #exited = Promise.withResolvers<ExitStatus>();
  #ended = false;

  constructor(id: string, channel: ChannelClient, from: number) {
    this.id = id;
    this.#channel = channel;
    this.exit = this.#exited.promise;
    this.exit.catch(() => {});
    this.output = this.#read(from);
  }

  async write(data: Uint8Array): Promise<void> {
    if (data.length > 0) await this.#send(CHANNEL_FRAME.stdin, data);
  }

  async endInput(): Promise<void> {
    await this.#send(CHANNEL_FRAME.stdinEnd, NOTHING);
  }

  async kill(signal: Signal): Promise<void> {
    await this.#send(CHANNEL_FRAME.signal, Buffer.from(signal));
  }

  async resize(_size: TerminalSize): Promise<void> {
    throw new SandboxerError('SBX_UNSUPPORTED', 'The stub has no terminals.');
  }

  async detach(): Promise<void> {
    this.#fail(this.#channel.lost(new Error('It was detached.')));
  }

  /** Sends input; input for a program that has ended is dropped, as in a shell. */
  async #send(type: number, data: Uint8Array): Promise<void> {
    if (this.#ended) return;
    await this.#channel.send(type, data).catch((error: unknown) => {
      if (!this.#ended) throw error;
    });
  }

  async *#read(from: number): AsyncGenerator<OutputChunk | OutputGap> {
    let offset = from;
    try {
      for (;;) {
        const frame = await this.#channel.next();
        if (frame === null) throw this.#channel.lost(new Error('It ended before the program did.'));
        if (frame.type === CHANNEL_FRAME.stdout || frame.type === CHANNEL_FRAME.stderr) {
          const stream = frame.type === CHANNEL_FRAME.stdout ? 'stdout' : 'stderr';
          yield { stream, offset, data: frame.payload };
          offset += frame.payload.length;
        } else if (frame.type === CHANNEL_FRAME.gap) {
          const { missing } = Gap.parse(JSON.parse(frame.payload.toString()));
          yield { stream: 'gap', offset, missing };
          offset += missing;
        } else if (frame.type === CHANNEL_FRAME.exit) {
          const exit = ExitStatus.parse(JSON.parse(frame.payload.toString()));
          this.#ended = true;
          this.#exited.resolve(exit);
          return;
        }
      }
    } catch (error) {
      this.#fail(error);
      throw error;
    } finally {
      this.#fail(this.#channel.lost(new Error('Nobody reads on.')));
    }
  }

  #fail(error: unknown): void {
    this.#ended = true;
    this.#exited.reject(error);
    this.#channel.close();
  }
}
