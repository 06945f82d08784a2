/** Where each file of a tar archive lies in it: enough to read some of them without unpacking any. */
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import { eachPaxRecord, paxSize } from '../../../archive/pax-records.ts';
import type { SandboxerError } from '../../../contract/errors/errors.ts';
import { notAnImage } from './bounded-file.ts';

export interface TarPart {
  readonly name: string;
  readonly offset: number;
  readonly size: number;
}

const BLOCK = 512;
const MOST_ENTRIES = 1_000_000;
const LONGEST_EXTENSION = 1_048_576;

function text(block: Buffer, start: number, length: number): string {
  const part = block.subarray(start, start + length);
  const end = part.indexOf(0);
  return part.subarray(0, end < 0 ? length : end).toString('utf8');
}

function sizeOf(block: Buffer): number {
  if ((block[124] as number) & 0x80) {
    let size = 0;
    for (let at = 125; at < 136; at += 1) size = size * 256 + (block[at] as number);
    return size;
  }
  return Number.parseInt(text(block, 124, 12).trim() || '0', 8);
}

function isHeader(block: Buffer): boolean {
  let sum = 8 * 0x20;
  for (let at = 0; at < BLOCK; at += 1) if (at < 148 || at >= 156) sum += block[at] as number;
  return Number.parseInt(text(block, 148, 8).trim(), 8) === sum;
}

/** What extended headers say of the entry that follows them. */
interface Told {
  name?: string;
  size?: number;
}

function sparse(name: string): SandboxerError {
  const shown = JSON.stringify(name.slice(0, 200));
  return notAnImage(
    `${shown} in it is stored with holes (sparse), which is not understood.`,
    'Pack it again without --sparse (-S).',
  );
}

/** Bytes that are in the archive, by the look at its length before. */
async function bytesAt(file: FileHandle, offset: number, size: number): Promise<Buffer> {
  const bytes = Buffer.alloc(size);
  const { bytesRead } = await file.read(bytes, 0, size, offset);
  if (bytesRead < size) throw cutOff();
  return bytes;
}

const cutOff = () => notAnImage('The archive is cut off.');
const damaged = () => notAnImage('The archive is damaged.');

/** Takes an extended header: of pax (`x`), or a long name of GNU tar (`L`; `K`, that of a link, is of no use here). */
function takeExtension(type: string, body: Buffer, told: Told): void {
  if (type === 'L') told.name = text(body, 0, body.length);
  if (type !== 'x') return;
  const isSound = eachPaxRecord(body, (key, value) => {
    if (key === 'GNU.sparse.name') throw sparse(value.toString('utf8'));
    if (key === 'path') told.name = value.toString('utf8');
    if (key === 'size') told.size = paxSize(value.toString('latin1'));
  });
  if (!isSound) throw damaged();
}

/** In archives of GNU tar ("ustar " without a zero byte) something else lies where the prefix is. */
function nameIn(block: Buffer): string {
  const prefix = text(block, 257, 6) === 'ustar' ? text(block, 345, 155) : '';
  return prefix === '' ? text(block, 0, 100) : `${prefix}/${text(block, 0, 100)}`;
}

/** Names without "./" before them. The files alone; an archive of nothing is none. */
export async function indexTar(path: string): Promise<ReadonlyMap<string, TarPart>> {
  const parts = new Map<string, TarPart>();
  const file = await open(path, 'r');
  let told: Told = {};
  let entries = 0;
  try {
    const { size: end } = await file.stat();
    if (end > 0 && end < BLOCK) throw notAnImage('It is not a tar archive.');
    for (let at = 0, count = 0; end > 0; count += 1) {
      // The end of an archive is a block of zeros (POSIX pax): without it the archive was cut off.
      const block = await bytesAt(file, at, BLOCK);
      if (block.every((byte) => byte === 0)) {
        if (told.name !== undefined || told.size !== undefined) throw cutOff();
        break;
      }
      if (!isHeader(block)) throw notAnImage('It is not a tar archive.');
      const type = String.fromCharCode(block[156] as number);
      const isExtension = 'xgLK'.includes(type);
      // Only the header of an entry has its size in a pax record.
      const size = (isExtension ? undefined : told.size) ?? sizeOf(block);
      const offset = at + BLOCK;
      if (!Number.isSafeInteger(size) || size < 0) throw damaged();
      if (offset + size > end) throw cutOff();
      if (count >= MOST_ENTRIES) throw notAnImage(`The archive has more than ${MOST_ENTRIES} entries.`);
      at = offset + Math.ceil(size / BLOCK) * BLOCK;
      if (isExtension) {
        if (type === 'g') continue;
        if (size > LONGEST_EXTENSION) throw notAnImage('The archive holds a header that is too large.');
        takeExtension(type, await bytesAt(file, offset, size), told);
        continue;
      }
      const name = told.name ?? nameIn(block);
      told = {};
      if (type === 'S') throw sparse(name);
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
