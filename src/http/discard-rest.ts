import type { IncomingMessage } from 'node:http';

const DISCARD_BYTES = 8 * 1_048_576;
const DISCARD_MS = 5_000;

/**
 * What is left of a refused body is read and thrown away, so that the client gets to see the answer: a connection that
 * is closed with unread bytes is reset. Whoever goes on sending is cut off.
 */
export function discardRest(request: IncomingMessage): void {
  const cut = () => request.destroy();
  const timer = setTimeout(cut, DISCARD_MS);
  let left = DISCARD_BYTES;
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) cut();
  });
  request.once('close', () => clearTimeout(timer));
  request.once('end', () => clearTimeout(timer));
  request.resume();
}
