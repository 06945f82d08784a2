import type { Socket } from 'node:net';
import { connect } from 'node:net';

const REQUEST = 'GET /v1/events HTTP/1.1\r\nhost: bench\r\naccept: text/event-stream\r\n\r\n';
const MARK = Buffer.from('\ndata: ');
/** Buffer of all connections: they are read one after the other, so that they can share it. */
const BUFFER = Buffer.alloc(65_536);

/**
 * Follows the event log over a bare socket: with a thousand subscribers in one process, an HTTP client would be measured instead.
 * All count the events; a `timed` one also reads when each event was made.
 */
export class Subscriber {
  received = 0;
  readonly delays: number[] = [];
  readonly opened: Promise<void>;
  readonly #socket: Socket;
  readonly #timed: boolean;
  #tail = '';
  /** Number of bytes of the mark that the last piece ended with. */
  #matched = 0;

  constructor(path: string, timed: boolean) {
    this.#timed = timed;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.opened = promise;
    const callback = (length: number) => {
      resolve();
      this.#take(BUFFER.subarray(0, length));
      return true;
    };
    this.#socket = connect({ path, onread: { buffer: BUFFER, callback } });
    this.#socket.on('error', reject);
    this.#socket.write(REQUEST);
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(bytes: Buffer): void {
    if (this.#timed) this.#read(bytes.toString('latin1'));
    else this.#count(bytes);
  }

  #count(bytes: Buffer): void {
    let from = 0;
    // A mark may be cut in two by the edge of a piece.
    while (this.#matched > 0 && from < bytes.length && this.#matched < MARK.length) {
      if (bytes[from] !== MARK[this.#matched]) {
        this.#matched = 0;
        break;
      }
      this.#matched += 1;
      from += 1;
    }
    if (this.#matched === MARK.length) {
      this.received += 1;
      this.#matched = 0;
    }
    if (this.#matched > 0) return;
    for (let at = bytes.indexOf(MARK, from); at >= 0; at = bytes.indexOf(MARK, at + MARK.length))
      this.received += 1;
    for (let length = Math.min(MARK.length - 1, bytes.length - from); length > 0; length--) {
      if (bytes.subarray(bytes.length - length).equals(MARK.subarray(0, length))) {
        this.#matched = length;
        return;
      }
    }
  }

  #read(piece: string): void {
    const now = Date.now();
    const text = this.#tail + piece;
    const end = text.lastIndexOf('\n\n');
    this.#tail = end < 0 ? text : text.slice(end);
    if (end < 0) return;
    for (const [, time] of text.slice(0, end).matchAll(/"time":"([^"]+)"/g)) {
      this.received += 1;
      this.delays.push(now - Date.parse(time as string));
    }
  }
}
