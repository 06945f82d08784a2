import type { WebSocket } from 'ws';
import { leaseOf } from '../bounds/message-watch.ts';

/** The most bytes that may wait to be sent before their producer has to wait, too. */
const HIGH_WATER_BYTES = 1_048_576;
/** The bytes that any connection may have waiting without being counted. */
const UNCOUNTED_BYTES = 65_536;

/** Sends with back-pressure: resolves when there is room for more. */
export class WebSocketSender {
  readonly #webSocket: WebSocket;
  #counted = 0;

  constructor(webSocket: WebSocket) {
    this.#webSocket = webSocket;
  }

  send(data: Uint8Array): Promise<void> | undefined {
    const webSocket = this.#webSocket;
    if (webSocket.readyState !== webSocket.OPEN) return Promise.reject(new Error('The WebSocket is closed.'));
    if (this.#hasRoom()) {
      webSocket.send(data, { binary: true });
      return undefined;
    }
    return new Promise((resolve, reject) => {
      webSocket.send(data, { binary: true }, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Counts waiting bytes against the budget of their key: without room there, the producer waits sooner. */
  #hasRoom(): boolean {
    const waiting = this.#webSocket.bufferedAmount;
    const lease = leaseOf(this.#webSocket);
    const more = (waiting < UNCOUNTED_BYTES ? 0 : waiting) - this.#counted;
    if (more === 0 || !lease) return waiting < HIGH_WATER_BYTES;
    if (more > 0 && !lease.tryGrow(more)) return false;
    if (more < 0) lease.shrink(-more);
    this.#counted += more;
    return waiting < HIGH_WATER_BYTES;
  }
}
