/** Index of a tar archive: the position of each file, to read some of them without unpacking any. */
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import { BLOCK, LONGEST_EXTENSION } from '../../../archive/tar/format.ts';
import { HeaderReader, isTarHeader, storedSize } from '../../../archive/tar/header-reader.ts';
import type { SandboxerError } from '../../../contract/errors/errors.ts';
import { notAnImage } from './bounded-file.ts';

export interface TarPart {
  readonly name: string;
  readonly offset: number;
  readonly size: number;
}

const MOST_ENTRIES = 1_000_000;

function sparse(name: string): SandboxerError {
  const shown = JSON.stringify(name.slice(0, 200));
  return notAnImage(
    `${shown} in it is stored with holes (sparse), which is not understood.`,
    'Pack it again without --sparse (-S).',
  );
}

/** Reads bytes that are within the archive, by its length at the earlier stat. */
async function bytesAt(file: FileHandle, offset: number, size: number): Promise<Buffer> {
  const bytes = Buffer.alloc(size);
  const { bytesRead } = await file.read(bytes, 0, size, offset);
  if (bytesRead < size) throw cutOff();
  return bytes;
}

const cutOff = () => notAnImage('The archive is cut off.');

/** Returns the files, without "./" before their names. An empty archive is an error. */
export async function indexTar(path: string): Promise<ReadonlyMap<string, TarPart>> {
  const parts = new Map<string, TarPart>();
  const file = await open(path, 'r');
  const headers = new HeaderReader({ refuse: notAnImage, nameOf: (bytes) => bytes.toString('utf8') });
  let entries = 0;
  try {
    const { size: end } = await file.stat();
    if (end > 0 && end < BLOCK) throw notAnImage('It is not a tar archive.');
    for (let at = 0, count = 0; end > 0; count += 1) {
      const block = await bytesAt(file, at, BLOCK);
      if (!isTarHeader(block) && block.some((byte) => byte !== 0))
        throw notAnImage('It is not a tar archive.');
      const header = headers.take(block);
      if (header.is === 'end') break;
      const { type, size } = header;
      const offset = at + BLOCK;
      if (offset + size > end) throw cutOff();
      if (count >= MOST_ENTRIES) throw notAnImage(`The archive has more than ${MOST_ENTRIES} entries.`);
      at = offset + storedSize(size);
      if (header.is === 'extension') {
        if (type === 'g') continue;
        if (size > LONGEST_EXTENSION) throw notAnImage('The archive holds a header that is too large.');
        headers.extend(type, await bytesAt(file, offset, size));
        continue;
      }
      const { name, sparseName } = header;
      if (type === 'S' || sparseName !== null) throw sparse(sparseName ?? name);
      const bare = name.replace(/^(?:\.?\/)+/, '');
      if (bare !== '' && bare !== '.') entries += 1;
      if (type === '0' || type === '\0') parts.set(bare, { name, offset, size });
    }
  } finally {
    await file.close();
  }
  if (entries === 0) throw notAnImage('There is nothing in it.');
  return parts;
}
