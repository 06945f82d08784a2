/** Where each file of a tar archive lies in it: enough to read some of them without unpacking any. */
import { open } from 'node:fs/promises';
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

function paxField(record: Buffer, field: string): string | null {
  const found = new RegExp(`(?:^|\\n)\\d+ ${field}=([^\\n]*)\\n`).exec(record.toString('utf8'));
  return found?.[1] ?? null;
}

function sparse(name: string): SandboxerError {
  const shown = JSON.stringify(name.slice(0, 200));
  return notAnImage(
    `${shown} in it is stored with holes (sparse), which is not understood.`,
    'Pack it again without --sparse (-S).',
  );
}

/** Names without "./" before them. The files alone; an archive of nothing is none. */
export async function indexTar(path: string): Promise<ReadonlyMap<string, TarPart>> {
  const parts = new Map<string, TarPart>();
  const file = await open(path, 'r');
  const block = Buffer.alloc(BLOCK);
  let given: string | null = null;
  let entries = 0;
  try {
    const { size: end } = await file.stat();
    if (end > 0 && end < BLOCK) throw notAnImage('It is not a tar archive.');
    for (let at = 0, count = 0; at + BLOCK <= end; count += 1) {
      await file.read(block, 0, BLOCK, at);
      if (block.every((byte) => byte === 0)) break;
      if (!isHeader(block)) throw notAnImage('It is not a tar archive.');
      const size = sizeOf(block);
      const type = String.fromCharCode(block[156] as number);
      const offset = at + BLOCK;
      if (!Number.isSafeInteger(size) || size < 0 || offset + size > end)
        throw notAnImage('The archive is cut off.');
      if (count >= MOST_ENTRIES) throw notAnImage(`The archive has more than ${MOST_ENTRIES} entries.`);
      if ((type === 'x' || type === 'L') && size <= LONGEST_EXTENSION) {
        const record = Buffer.alloc(size);
        await file.read(record, 0, size, offset);
        const holes = type === 'x' ? paxField(record, 'GNU\\.sparse\\.name') : null;
        if (holes !== null) throw sparse(holes);
        given =
          type === 'x' ? (paxField(record, 'path') ?? given) : record.toString('utf8').replace(/\0.*$/s, '');
      } else if (type !== 'K' && type !== 'g') {
        const prefix = text(block, 345, 155);
        const name = given ?? (prefix === '' ? text(block, 0, 100) : `${prefix}/${text(block, 0, 100)}`);
        given = null;
        if (type === 'S') throw sparse(name);
        const bare = name.replace(/^(?:\.?\/)+/, '');
        if (bare !== '' && bare !== '.') entries += 1;
        if (type === '0' || type === '\0') parts.set(bare, { name, offset, size });
      }
      at = offset + Math.ceil(size / BLOCK) * BLOCK;
    }
  } finally {
    await file.close();
  }
  if (entries === 0) throw notAnImage('There is nothing in it.');
  return parts;
}
