import { createHash, randomBytes } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { apiErrorFrom } from './api-error.ts';
import { connectionErrorFrom, SandboxerConnectionError } from './connection-error.ts';
import type { CallOptions, Transport } from './transport.ts';
import { asError } from './transport.ts';
import type { WebSocketMessage } from './web-socket-codec.ts';
import { encodeClose, encodeWebSocketFrame, OPCODE, WebSocketDecoder } from './web-socket-codec.ts';

const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const NORMAL_CLOSE = 1000;
const PROTOCOL_ERROR = 1002;
const CLOSE_WITHIN_MS = 2_000;

/** WebSocket with unix sockets, request headers and back-pressure, which the global WebSocket lacks. */
export class WebSocketConnection implements AsyncIterable<WebSocketMessage> {
  readonly #socket: Duplex;
  readonly #decoder = new WebSocketDecoder();
  readonly #head: Buffer;
  readonly #address: string;
  #closing = false;

  constructor(socket: Duplex, head: Buffer, address: string) {
    this.#socket = socket;
    this.#head = head;
    this.#address = address;
    // Errors surface where the socket is read or written.
    socket.on('error', () => {});
  }

  /** Yields text and binary messages, until the other side closes. A slow reader slows the server down. */
  async *[Symbol.asyncIterator](): AsyncGenerator<WebSocketMessage> {
    try {
      if (this.#head.length > 0) yield* this.#messages(this.#head);
      for await (const bytes of this.#socket) {
        yield* this.#messages(bytes as Buffer);
        if (this.#closing) return;
      }
      if (!this.#closing) {
        throw new SandboxerConnectionError('lost', `The connection to ${this.#address} broke.`, true);
      }
    } catch (error) {
      if (error instanceof SandboxerConnectionError && error.failure === 'protocol') {
        this.#socket.write(encodeClose(PROTOCOL_ERROR));
      }
      if (error instanceof Error && 'syscall' in error) throw connectionErrorFrom(error, this.#address);
      throw error;
    } finally {
      this.#socket.destroy();
    }
  }

  /** Resolves when there is room for more. */
  async send(opcode: number, payload: Uint8Array): Promise<void> {
    if (this.#closing || this.#socket.destroyed || !this.#socket.writable) return;
    if (!this.#socket.write(encodeWebSocketFrame(opcode, payload))) await this.#drained();
  }

  /** Sends a close frame and gives the other side a limited time to close the connection. */
  close(code = NORMAL_CLOSE): void {
    if (this.#closing) return;
    this.#closing = true;
    if (this.#socket.destroyed) return;
    this.#socket.end(encodeClose(code));
    const timer = setTimeout(() => this.#socket.destroy(), CLOSE_WITHIN_MS);
    timer.unref();
    this.#socket.once('close', () => clearTimeout(timer));
  }

  destroy(reason?: Error): void {
    this.#closing = reason === undefined;
    this.#socket.destroy(reason);
  }

  *#messages(bytes: Buffer): Generator<WebSocketMessage> {
    for (const message of this.#decoder.decode(bytes)) {
      if (message.opcode === OPCODE.ping) this.#socket.write(encodeWebSocketFrame(OPCODE.pong, message.data));
      else if (message.opcode === OPCODE.close) {
        const code = message.data.length >= 2 ? message.data.readUInt16BE(0) : NORMAL_CLOSE;
        this.close(code);
        return;
      } else if (message.opcode !== OPCODE.pong) yield message;
    }
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#socket.off('drain', done).off('close', done);
        resolve();
      };
      this.#socket.on('drain', done).on('close', done);
    });
  }
}

function accepts(response: IncomingMessage, key: string): boolean {
  const expected = createHash('sha1')
    .update(key + ACCEPT_SUFFIX)
    .digest('base64');
  return response.headers['sec-websocket-accept'] === expected;
}

async function refusal(response: IncomingMessage): Promise<Error> {
  let text = '';
  for await (const part of response.setEncoding('utf8')) text += part;
  return apiErrorFrom(response.statusCode ?? 0, text, response.headers['retry-after']);
}

function handshake(transport: Transport, path: string, options: CallOptions): Promise<WebSocketConnection> {
  const signal = transport.signalOf(options);
  if (signal?.aborted) return Promise.reject(asError(signal.reason));
  const key = randomBytes(16).toString('base64');
  const address = transport.address.text;
  return new Promise((resolve, reject) => {
    const request: ClientRequest = transport.upgradeRequest(path, {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': key,
      'sec-websocket-version': '13',
    });
    const fail = (error: Error) => {
      clearTimeout(timer);
      reject(error);
      request.destroy();
    };
    const timer = setTimeout(
      () => fail(new SandboxerConnectionError('timeout', `${address} did not answer in time.`, true)),
      transport.timeoutOf(options),
    );
    let connection: WebSocketConnection | null = null;
    const onAbort = () => {
      const reason = asError(signal?.reason);
      if (connection === null) fail(reason);
      else connection.destroy(reason);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    request.on('error', (error) => fail(connectionErrorFrom(error, address)));
    request.once('response', (response) => {
      refusal(response).then(fail, (error) => fail(connectionErrorFrom(error, address)));
    });
    request.once('upgrade', (response, socket, head) => {
      clearTimeout(timer);
      socket.once('close', () => signal?.removeEventListener('abort', onAbort));
      if (!accepts(response, key)) {
        socket.destroy();
        return fail(new SandboxerConnectionError('protocol', `${address} does not speak WebSocket.`, true));
      }
      connection = new WebSocketConnection(socket, head, address);
      resolve(connection);
    });
    request.end();
  });
}

export function openWebSocket(
  transport: Transport,
  path: string,
  options: CallOptions,
): Promise<WebSocketConnection> {
  return transport.retrying({ ...options, method: 'GET', path }, () => handshake(transport, path, options));
}
