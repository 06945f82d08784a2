import type { PortConnection } from '../../../core/ports/session.ts';
import type { AgentChannel } from './agent-channel.ts';
import { T } from './wire.ts';

/** A TCP connection inside, at the other end of a channel. */
export class AgentPortConnection implements PortConnection {
  readonly readable: AsyncIterable<Uint8Array>;
  readonly #channel: AgentChannel;
  #destroyed = false;

  constructor(channel: AgentChannel) {
    this.#channel = channel;
    this.readable = this.#read();
  }

  async write(data: Uint8Array): Promise<void> {
    await this.#channel.write(data);
  }

  async end(): Promise<void> {
    this.#channel.send(T.eof);
  }

  destroy(): void {
    this.#destroyed = true;
    this.#channel.close();
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const frame = await this.#channel.next();
      if (frame === null || frame.type === T.eof || frame.type === T.closed) return;
      if (frame.type === T.data) yield frame.data;
      else if (frame.type === T.error && this.#destroyed) return;
      else if (frame.type === T.error) throw this.#channel.errorOf(frame);
      else throw this.#channel.violation(`frame ${frame.type} came instead of bytes`);
    }
  }
}
