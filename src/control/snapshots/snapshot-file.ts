import { SnapshotFileHeader } from '../../contract/assets/snapshot.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';

const MOST_HEADER_BYTES = 65_536;
const NEWLINE = 0x0a;

function notOne(detail: string): SandboxerError {
  return new SandboxerError('SBX_INVALID_REQUEST', detail, {
    creation: 'not_created',
    remedy: 'Send a file that `sandboxer snapshots export` wrote.',
  });
}

/** Reads the first line of a snapshot's file; `rest` is what follows it. */
export async function readSnapshotFile(
  file: AsyncIterable<Uint8Array>,
): Promise<{ header: SnapshotFileHeader; rest: AsyncIterable<Uint8Array> }> {
  const source = file[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  let end = -1;
  while (end < 0) {
    const { value, done } = await source.next();
    if (done) throw notOne('It is no file of a snapshot.');
    head = Buffer.concat([head, value]);
    end = head.indexOf(NEWLINE);
    if ((end < 0 ? head.length : end) > MOST_HEADER_BYTES) throw notOne('It is no file of a snapshot.');
  }
  return { header: parsed(head.subarray(0, end)), rest: following(head.subarray(end + 1), source) };
}

function parsed(line: Buffer): SnapshotFileHeader {
  try {
    return SnapshotFileHeader.parse(JSON.parse(line.toString('utf8')));
  } catch {
    throw notOne('It is no file of a snapshot, or one of another version.');
  }
}

async function* following(first: Uint8Array, source: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    if (first.length > 0) yield first;
    for (;;) {
      const { value, done } = await source.next();
      if (done) return;
      yield value;
    }
  } finally {
    await source.return?.();
  }
}
