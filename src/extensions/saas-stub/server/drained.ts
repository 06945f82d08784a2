import type { Writable } from 'node:stream';

/** Resolves when the stream takes more, or has ended for good. */
export async function drained(stream: Writable): Promise<void> {
  if (stream.destroyed || !stream.writableNeedDrain) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      stream.off('drain', done);
      stream.off('close', done);
      resolve();
    };
    stream.once('drain', done);
    stream.once('close', done);
  });
}
