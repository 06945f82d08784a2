import type { IncomingMessage } from 'node:http';

/** Bytes read ahead of the reader; beyond them the sender waits. */
const AHEAD_BYTES = 524_288;

/**
 * Yields the bytes of an answer in the pieces that they arrived in. The message's own iterator joins waiting pieces, which copies
 * a fast stream once more. A reader that stops early ends the answer.
 */
export async function* piecesOf(message: IncomingMessage): AsyncGenerator<Buffer, undefined> {
  const waiting: Buffer[] = [];
  let waitingBytes = 0;
  let over = false;
  let failure: Error | null = message.errored;
  let wake = () => {};
  message.on('data', (piece: Buffer) => {
    waiting.push(piece);
    waitingBytes += piece.length;
    if (waitingBytes > AHEAD_BYTES) message.pause();
    wake();
  });
  message.once('end', () => {
    over = true;
    wake();
  });
  message.once('error', (error: Error) => {
    failure = error;
    wake();
  });
  message.once('close', () => {
    if (!over) failure ??= Object.assign(new Error('The answer was cut off.'), { code: 'ECONNRESET' });
    wake();
  });
  try {
    while (true) {
      const piece = waiting.shift();
      if (piece !== undefined) {
        waitingBytes -= piece.length;
        if (message.isPaused() && waitingBytes === 0) message.resume();
        yield piece;
        continue;
      }
      if (failure !== null) throw failure;
      if (over) return undefined;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    if (!over) message.destroy();
  }
}
