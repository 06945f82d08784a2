import { isUtf8 } from 'node:buffer';
import type { ExecChunk } from '../../client/streams/frames.ts';
import type { ExecStreamItem } from '../../contract/sandboxes/exec.ts';
import type { Printer } from '../output/printer.ts';

function drained(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.off('drain', done).off('close', done).off('error', done);
      resolve();
    };
    stream.on('drain', done).on('close', done).on('error', done);
  });
}

/** Form of a chunk on the wire: one line of an exec stream. */
function streamItemOf(chunk: ExecChunk): ExecStreamItem {
  if (!('data' in chunk)) return chunk;
  const encoding = isUtf8(chunk.data) ? 'utf8' : 'base64';
  return { type: chunk.type, offset: chunk.offset, data: chunk.data.toString(encoding), encoding };
}

/** Writes a program's output as it is: its stdout to ours, its stderr to ours, at the pace of the reader. */
export async function writeChunk(chunk: ExecChunk, printer: Printer): Promise<void> {
  if (printer.json) printer.item(streamItemOf(chunk));
  else if (chunk.type === 'gap') printer.warn(`${chunk.missing} bytes of output are no longer kept`);
  else if ('data' in chunk) {
    const stream = chunk.type === 'stderr' ? process.stderr : process.stdout;
    if (!stream.destroyed && !stream.write(chunk.data)) await drained(stream);
  }
}
