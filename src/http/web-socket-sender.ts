import type { WebSocket } from 'ws';

/** What may wait to be sent before whoever produces it has to wait, too. */
const HIGH_WATER_BYTES = 1_048_576;

/** Sends with back-pressure: resolves when there is room for more. */
export class WebSocketSender {
  readonly #webSocket: WebSocket;

  constructor(webSocket: WebSocket) {
    this.#webSocket = webSocket;
  }

  send(data: Uint8Array): Promise<void> | undefined {
    const webSocket = this.#webSocket;
    if (webSocket.readyState !== webSocket.OPEN) return Promise.reject(new Error('The WebSocket is closed.'));
    if (webSocket.bufferedAmount < HIGH_WATER_BYTES) {
      webSocket.send(data, { binary: true });
      return undefined;
    }
    return new Promise((resolve, reject) => {
      webSocket.send(data, { binary: true }, (error) => (error ? reject(error) : resolve()));
    });
  }
}
