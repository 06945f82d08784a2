import type { ExecInput, Signal, TerminalSize } from '../../contract/sandboxes/exec.ts';
import { SandboxerConnectionError } from '../transport/connection-error.ts';
import { pathOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import type { WebSocketConnection } from '../transport/web-socket.ts';
import { openWebSocket } from '../transport/web-socket.ts';
import { OPCODE } from '../transport/web-socket-codec.ts';
import type { ExecChunk } from './frames.ts';
import { encodeFrame, FRAME_TYPE, FrameDecoder } from './frames.ts';

const INPUT_PIECE = 65_536;
const NOTHING = new Uint8Array(0);

/** Program whose input stays open: bytes, end of input, window size and signals go in while output comes out. */
export class InteractiveExec implements AsyncIterable<ExecChunk> {
  readonly #connection: WebSocketConnection;

  constructor(connection: WebSocketConnection) {
    this.#connection = connection;
  }

  /** Yields output; ends after the exit. A reader that stops early closes the connection, which kills a foreground process. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ExecChunk> {
    const decoder = new FrameDecoder();
    let ended = false;
    for await (const message of this.#connection) {
      if (message.opcode !== OPCODE.binary) continue;
      for (const chunk of decoder.decode(message.data)) {
        yield chunk;
        if (chunk.type === 'exit') ended = true;
      }
      if (ended) break;
    }
    this.#connection.close();
    if (!ended)
      throw new SandboxerConnectionError('lost', 'The connection ended before the program did.', true);
  }

  async write(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length; at += INPUT_PIECE) {
      await this.#send(FRAME_TYPE.stdin, data.subarray(at, at + INPUT_PIECE));
    }
  }

  endInput(): Promise<void> {
    return this.#send(FRAME_TYPE.stdinEnd, NOTHING);
  }

  resize(size: TerminalSize): Promise<void> {
    return this.#send(FRAME_TYPE.resize, Buffer.from(JSON.stringify(size)));
  }

  kill(signal: Signal): Promise<void> {
    return this.#send(FRAME_TYPE.signal, Buffer.from(JSON.stringify({ signal })));
  }

  close(): void {
    this.#connection.destroy();
  }

  #send(type: number, payload: Uint8Array): Promise<void> {
    return this.#connection.send(OPCODE.binary, encodeFrame(type, payload));
  }
}

export async function openInteractiveExec(
  transport: Transport,
  sandboxId: string,
  request: ExecInput,
  options: CallOptions,
): Promise<InteractiveExec> {
  const connection = await openWebSocket(transport, pathOf('sandboxes', sandboxId, 'exec'), options);
  await connection.send(OPCODE.text, Buffer.from(JSON.stringify(request)));
  return new InteractiveExec(connection);
}
