import type { IncomingMessage, ServerResponse } from 'node:http';
import { isBodyUnasked } from './expected-continue.ts';

const MOST_BYTES = 64 * 1_048_576;
const MOST_MS = 30_000;
const SILENT_MS = 3_000;

function bringsBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Reads and throws away. A client that goes on and on, or falls silent, is cut off. */
function discardRest(request: IncomingMessage, over: () => void): void {
  const cut = () => request.destroy();
  const longest = setTimeout(cut, MOST_MS);
  const silence = setTimeout(cut, SILENT_MS);
  let left = MOST_BYTES;
  const done = () => {
    clearTimeout(longest);
    clearTimeout(silence);
    over();
  };
  request.on('data', (chunk: Buffer) => {
    silence.refresh();
    left -= chunk.length;
    if (left < 0) cut();
  });
  request.unpipe();
  request.once('end', done).once('close', done);
  request.resume();
}

/** Decides, before the head of an answer is written, whether the connection can be used again. */
export function closeIfUnasked(request: IncomingMessage, response: ServerResponse): void {
  if (isBodyUnasked(request)) response.shouldKeepAlive = false;
}

/**
 * Ends an answer whose head is written. A connection that is closed with bytes unread is reset, and the client never
 * sees the answer: what is left of its body is read first, while the answer is on its way.
 */
export function endAnswer(request: IncomingMessage, response: ServerResponse, text?: string): void {
  if (request.complete || !bringsBody(request)) {
    response.end(text);
    return;
  }
  if (text === undefined) response.flushHeaders();
  else response.write(text);
  discardRest(request, () => {
    if (!response.destroyed) response.end();
  });
}
