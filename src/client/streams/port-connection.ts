import { Duplex } from 'node:stream';
import { pathOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import { asError } from '../transport/transport.ts';
import type { WebSocketConnection } from '../transport/web-socket.ts';
import { openWebSocket } from '../transport/web-socket.ts';
import { OPCODE } from '../transport/web-socket-codec.ts';

const PIECE = 65_536;
const END = Buffer.from('end');

/** Byte stream to and from a TCP port inside a sandbox. */
class PortConnection extends Duplex {
  readonly #connection: WebSocketConnection;
  readonly #messages: AsyncIterator<{ readonly data: Buffer }>;

  constructor(connection: WebSocketConnection) {
    super();
    this.#connection = connection;
    this.#messages = connection[Symbol.asyncIterator]();
  }

  override _read(): void {
    this.#messages.next().then(
      ({ value, done }) => {
        if (done) this.push(null);
        else if (value.data.length === 0) this._read();
        else this.push(value.data);
      },
      (error) => this.destroy(asError(error)),
    );
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error) => void): void {
    this.#sendAll(chunk).then(() => callback(), callback);
  }

  /** Closes our half; the other may still send. */
  override _final(callback: (error?: Error) => void): void {
    this.#connection.send(OPCODE.text, END).then(() => callback(), callback);
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#connection.destroy();
    callback(error);
  }

  async #sendAll(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; at += PIECE) {
      await this.#connection.send(OPCODE.binary, chunk.subarray(at, at + PIECE));
    }
  }
}

export async function connectPort(
  transport: Transport,
  sandboxId: string,
  port: number,
  options: CallOptions,
): Promise<Duplex> {
  const path = pathOf('sandboxes', sandboxId, 'ports', port, 'connect');
  return new PortConnection(await openWebSocket(transport, path, options));
}
