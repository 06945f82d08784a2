import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { BufferLease } from './buffer-budget.ts';
import { MessageMeter } from './message-meter.ts';

const TOO_BIG = 1009;
const TOO_SLOW = 1008;
const TRY_AGAIN = 1013;
const LAST_WORDS_MS = 1_000;

export interface MessageBounds {
  /** A message is complete within this time. */
  readonly messageMs: number;
  /** The first message, where it is a request. */
  readonly firstBytes: number | null;
}

const leases = new WeakMap<WebSocket, BufferLease>();

/** Returns the lease of a connection: it counts the messages that arrived and those that wait to be sent. */
export function leaseOf(webSocket: WebSocket): BufferLease | undefined {
  return leases.get(webSocket);
}

/** Counts what a connection makes this process hold, and ends it when a message is too large, too slow or has no room. */
export function watchMessages(
  webSocket: WebSocket,
  socket: Socket,
  lease: BufferLease,
  { messageMs, firstBytes }: MessageBounds,
): void {
  const meter = new MessageMeter();
  let counted = 0;
  let timer: NodeJS.Timeout | null = null;
  /** The message that the timer is of: its number. */
  let timed = 0;
  leases.set(webSocket, lease);

  const end = (code: number, reason: string) => {
    socket.off('data', arrived);
    webSocket.removeAllListeners('message');
    webSocket.close(code, reason);
    // Data that still arrives would be buffered until its message is complete.
    webSocket.pause();
    setTimeout(() => webSocket.terminate(), LAST_WORDS_MS).unref();
  };
  const late = () => {
    timer = null;
    // While we do not read, nothing can arrive.
    if (webSocket.isPaused) timer = setTimeout(late, messageMs);
    else end(TOO_SLOW, 'SBX_REQUEST_TIMEOUT');
  };
  const arrived = (bytes: Buffer) => {
    meter.feed(bytes);
    if (timer && (!meter.isOpen || timed !== meter.messages)) {
      clearTimeout(timer);
      timer = null;
    }
    if (meter.isOpen && !timer) {
      timed = meter.messages;
      timer = setTimeout(late, messageMs);
    }
    if (firstBytes !== null && meter.messages === 0 && meter.held > firstBytes)
      return end(TOO_BIG, 'SBX_PAYLOAD_TOO_LARGE');
    const more = meter.held - counted;
    counted = meter.held;
    if (more <= 0) lease.shrink(-more);
    else if (!lease.tryGrow(more)) end(TRY_AGAIN, 'SBX_UNAVAILABLE');
  };
  socket.on('data', arrived);
  webSocket.once('close', () => {
    if (timer) clearTimeout(timer);
    lease.release();
  });
}
