/** Tar streams as file trees travel: ustar, with pax headers where a name or a size needs one. */
import { eachPaxRecord, paxSize } from '../../archive/pax-records.ts';
import { bytesOfName, nameOfBytes } from './file-name.ts';

const BLOCK = 512;
const LONGEST_NAME = 100;
const LARGEST_OCTAL = 0o77777777777;
const LONGEST_EXTENSION = 1_048_576;

export interface TarHeader {
  /** Relative, with `/`; `.` is the top itself. As `nameOfBytes` has it. */
  readonly name: string;
  readonly kind: 'file' | 'directory' | 'symlink';
  readonly mode: number;
  /** Of the content; 0 for what is not a file. */
  readonly size: number;
  readonly modifiedAtMs: number;
  readonly linkTarget: string | null;
}

export interface TarEntry extends TarHeader {
  /** What is not read of it is skipped when the next entry is asked for. */
  readonly body: AsyncIterable<Buffer>;
}

const TYPE_OF = { file: '0', directory: '5', symlink: '2' } as const;
const KIND_OF: Readonly<Record<string, TarHeader['kind']>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '5': 'directory',
  '2': 'symlink',
};

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`;
}

function checksum(block: Buffer): number {
  let sum = 8 * 0x20;
  for (let at = 0; at < BLOCK; at += 1) if (at < 148 || at >= 156) sum += block[at] as number;
  return sum;
}

function headerBlock(
  name: Buffer,
  type: string,
  mode: number,
  size: number,
  mtime: number,
  link: Buffer,
): Buffer {
  const block = Buffer.alloc(BLOCK);
  name.copy(block, 0, 0, LONGEST_NAME);
  block.write(octal(mode & 0o7777, 8), 100, 'latin1');
  block.write(octal(0, 8), 108, 'latin1');
  block.write(octal(0, 8), 116, 'latin1');
  block.write(octal(Math.min(size, LARGEST_OCTAL), 12), 124, 'latin1');
  block.write(octal(Math.max(0, Math.min(mtime, LARGEST_OCTAL)), 12), 136, 'latin1');
  block.write(type, 156, 'latin1');
  link.copy(block, 157, 0, LONGEST_NAME);
  block.write('ustar\x0000', 257, 'latin1');
  block.write(`${checksum(block).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/** `<length> <key>=<value>\n`, where the length counts itself. */
function paxRecord(key: string, value: Buffer): Buffer {
  const body = ` ${key}=\n`.length + value.length;
  let length = body + String(body).length;
  length = body + String(length).length;
  return Buffer.concat([Buffer.from(`${length} ${key}=`), value, Buffer.from('\n')]);
}

export function tarPadding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

export const TAR_END = Buffer.alloc(2 * BLOCK);

export function encodeTarHeader(header: TarHeader): Buffer {
  const { kind } = header;
  const name = bytesOfName(kind === 'directory' && header.name !== '.' ? `${header.name}/` : header.name);
  const link = bytesOfName(header.linkTarget ?? '');
  const mtime = Math.floor(header.modifiedAtMs / 1000);
  const records: Buffer[] = [];
  if (name.length > LONGEST_NAME) records.push(paxRecord('path', name));
  if (link.length > LONGEST_NAME) records.push(paxRecord('linkpath', link));
  if (header.size > LARGEST_OCTAL) records.push(paxRecord('size', Buffer.from(String(header.size))));
  const block = headerBlock(name, TYPE_OF[kind], header.mode, header.size, mtime, link);
  if (records.length === 0) return block;
  const pax = Buffer.concat(records);
  return Buffer.concat([
    headerBlock(Buffer.from('pax'), 'x', 0o644, pax.length, mtime, Buffer.alloc(0)),
    pax,
    tarPadding(pax.length),
    block,
  ]);
}

/** An archive that cannot be used: damaged, cut off, or holding what has no place in it. */
export class TarError extends Error {
  override readonly name = 'TarError';
}

/** Exact amounts of a stream that comes in arbitrary pieces. */
class Blocks {
  readonly #source: AsyncIterator<Uint8Array>;
  #piece: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** The next bytes without a copy: at least one, at most `most`; `null` at the end. */
  async some(most: number): Promise<Buffer | null> {
    while (this.#piece.length === 0) {
      const { value, done } = await this.#source.next();
      if (done) return null;
      this.#piece = Buffer.from(value.buffer, value.byteOffset, value.length);
    }
    const taken = this.#piece.subarray(0, most);
    this.#piece = this.#piece.subarray(taken.length);
    return taken;
  }

  /** `null` when the stream ended right before; an error when it ended in between. */
  async exactly(count: number): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    for (let left = count; left > 0; ) {
      const part = await this.some(left);
      if (part === null) {
        if (left === count) return null;
        throw new TarError('The archive is cut off.');
      }
      parts.push(part);
      left -= part.length;
    }
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) {
      const part = await this.some(left);
      if (part === null) throw new TarError('The archive is cut off.');
      left -= part.length;
    }
  }

  async drain(): Promise<void> {
    while ((await this.some(Number.MAX_SAFE_INTEGER)) !== null);
  }

  /** Tells the source that no more is wanted. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }
}

function text(block: Buffer, at: number, length: number): string {
  const end = block.indexOf(0, at);
  return nameOfBytes(block.subarray(at, end === -1 || end > at + length ? at + length : end));
}

function number(block: Buffer, at: number, length: number): number {
  if (((block[at] as number) & 0x80) !== 0) {
    let value = (block[at] as number) & 0x7f;
    for (let index = at + 1; index < at + length; index += 1) value = value * 256 + (block[index] as number);
    return value;
  }
  const digits = text(block, at, length).trim();
  if (!/^[0-7]*$/.test(digits)) throw new TarError('The archive is damaged.');
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}

const PAX_KEYS: ReadonlySet<string> = new Set(['linkpath', 'path', 'size']);

/** Others are not kept: headers may go on without an entry for as long as the archive does. */
function takePaxRecords(body: Buffer, into: Map<string, string>): void {
  const isSound = eachPaxRecord(body, (key, value) => {
    if (PAX_KEYS.has(key)) into.set(key, nameOfBytes(value));
  });
  if (!isSound) throw new TarError('The archive is damaged.');
}

async function* bodyOf(blocks: Blocks, remaining: { bytes: number }): AsyncGenerator<Buffer> {
  while (remaining.bytes > 0) {
    const part = await blocks.some(remaining.bytes);
    if (part === null) throw new TarError('The archive is cut off.');
    remaining.bytes -= part.length;
    yield part;
  }
}

async function takeExtension(
  blocks: Blocks,
  type: string,
  size: number,
  into: Map<string, string>,
): Promise<void> {
  if (size > LONGEST_EXTENSION) throw new TarError('The archive holds a header that is too large.');
  const body = size === 0 ? Buffer.alloc(0) : await blocks.exactly(size);
  if (body === null) throw new TarError('The archive is cut off.');
  await blocks.skip(tarPadding(size).length);
  if (type === 'x') takePaxRecords(body, into);
  else if (type === 'L') into.set('path', text(body, 0, body.length));
  else if (type === 'K') into.set('linkpath', text(body, 0, body.length));
}

function withoutLastSlashes(name: string): string {
  let end = name.length;
  while (name[end - 1] === '/') end -= 1;
  return name.slice(0, end);
}

/** Entries one after another. Names are as the archive has them: whoever unpacks must not trust them. */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const blocks = new Blocks(source);
  let extended = new Map<string, string>();
  try {
    for (;;) {
      const block = await blocks.exactly(BLOCK);
      // The end of an archive is a block of zeros (POSIX pax): without it the archive was cut off.
      if (block === null) throw new TarError('The archive is cut off.');
      if (block.every((byte) => byte === 0)) break;
      if (number(block, 148, 8) !== checksum(block)) throw new TarError('The archive is damaged.');
      const type = String.fromCharCode(block[156] as number);
      // Only the header of an entry has its size in a pax record.
      const given = 'xgLK'.includes(type) ? undefined : extended.get('size');
      const size = given === undefined ? number(block, 124, 12) : paxSize(given);
      if (!Number.isSafeInteger(size) || size < 0) throw new TarError('The archive is damaged.');
      if ('xgLK'.includes(type)) {
        await takeExtension(blocks, type, size, extended);
        continue;
      }
      const kind = KIND_OF[type];
      if (kind === undefined) throw new TarError(`The archive holds an entry of the unknown type "${type}".`);
      // In archives of GNU tar ("ustar " without a zero byte) something else lies where the prefix is.
      const prefix = text(block, 257, 6) === 'ustar' ? text(block, 345, 155) : '';
      const plain = text(block, 0, LONGEST_NAME);
      const name = extended.get('path') ?? (prefix === '' ? plain : `${prefix}/${plain}`);
      const link = extended.get('linkpath') ?? text(block, 157, LONGEST_NAME);
      extended = new Map();
      const remaining = { bytes: size };
      yield {
        name: withoutLastSlashes(name) || '.',
        kind,
        mode: number(block, 100, 8) & 0o7777,
        size: kind === 'file' ? size : 0,
        modifiedAtMs: number(block, 136, 12) * 1000,
        linkTarget: kind === 'symlink' ? link : null,
        body: bodyOf(blocks, remaining),
      };
      await blocks.skip(remaining.bytes + tarPadding(size).length);
    }
    if (extended.size > 0) throw new TarError('The archive is cut off.');
    await blocks.drain();
  } finally {
    await blocks.close();
  }
}
