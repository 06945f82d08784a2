import type { WebSocket } from 'ws';
import { Mutex } from '../../async/mutex.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { leaseOf } from '../bounds/message-watch.ts';

const PAUSE_ABOVE_BYTES = 1_048_576;

/** Passes input on in order, one piece at a time. While too much of it waits, the socket is not read. */
export class InputQueue {
  readonly #webSocket: WebSocket;
  readonly #failed: (error: unknown) => void;
  #waiting = 0;
  readonly #order = new Mutex();

  constructor(webSocket: WebSocket, failed: (error: unknown) => void) {
    this.#webSocket = webSocket;
    this.#failed = failed;
  }

  add(bytes: number, pass: () => Promise<void>): void {
    const webSocket = this.#webSocket;
    const lease = leaseOf(webSocket);
    if (lease && !lease.tryGrow(bytes)) {
      this.#failed(noRoom());
      return;
    }
    this.#waiting += bytes;
    if (this.#waiting > PAUSE_ABOVE_BYTES) webSocket.pause();
    void this.#order
      .run(async () => {
        // Not in the turn in which the input arrived: a signal that came with it is passed on first.
        await null;
        await pass();
      })
      .catch(this.#failed)
      .then(() => {
        this.#waiting -= bytes;
        lease?.shrink(bytes);
        if (webSocket.isPaused && this.#waiting <= PAUSE_ABOVE_BYTES / 2) webSocket.resume();
      });
  }
}

function noRoom(): SandboxerError {
  return new SandboxerError('SBX_UNAVAILABLE', 'Too much input waits to be passed on.', {
    retryAfterSeconds: 1,
    remedy: 'Send input as fast as the program reads it.',
  });
}
