/**
 * Tar streams as extensions move file trees: ustar with pax and GNU long names. Regular files, directories and
 * symbolic links only. Names are checked here; what a name meets on the disk is for whoever unpacks to check.
 */
import { ArchiveLinks } from '../../../archive/archive-links.ts';
import { partsOf } from '../../../archive/link-judge.ts';
import { eachPaxRecord, paxSize } from '../../../archive/pax-records.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import { ByteReader } from './byte-reader.ts';

const BLOCK = 512;
const MAX_EXTENSION_BYTES = 1_048_576;
const MAX_NAME = 4096;

export interface TarHeader {
  /** Relative, without `..`, without a trailing slash; `.` is the top itself. */
  readonly name: string;
  readonly kind: 'file' | 'directory' | 'symlink';
  readonly mode: number;
  readonly size: number;
  readonly modifiedAt: number;
  readonly linkTarget: string | null;
}

export interface TarEntry extends TarHeader {
  /** What is not read of it is skipped when the next entry is asked for. */
  readonly body: AsyncIterable<Uint8Array>;
}

function refuse(detail: string): SandboxerError {
  return new SandboxerError('SBX_PATH_REFUSED', detail);
}

function checkedName(name: string): string {
  const parts = partsOf(name);
  if (name.startsWith('/') || parts.includes('..'))
    throw refuse(`The archive would leave its place: ${name}`);
  if (name.includes('\0') || name.length > MAX_NAME)
    throw refuse('The archive holds a name that cannot be used.');
  return parts.join('/') || '.';
}

function refuseLink(reason: string | null): void {
  if (reason !== null) throw refuse(`A link of the archive would leave its place: ${reason}.`);
}

function textAt(block: Buffer, offset: number, length: number): string {
  const field = block.subarray(offset, offset + length);
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end === -1 ? length : end);
}

function numberAt(block: Buffer, offset: number, length: number): number {
  if (((block[offset] ?? 0) & 0x80) !== 0) {
    let value = (block[offset] ?? 0) & 0x7f;
    for (let at = offset + 1; at < offset + length; at += 1) value = value * 256 + (block[at] ?? 0);
    if (!Number.isSafeInteger(value)) throw refuse('The archive holds a number that is too large.');
    return value;
  }
  const text = textAt(block, offset, length).trim();
  if (!/^[0-7]*$/.test(text)) throw refuse('The archive is damaged.');
  return text === '' ? 0 : Number.parseInt(text, 8);
}

function checksumOf(block: Buffer): number {
  let sum = 0;
  for (let at = 0; at < BLOCK; at += 1) sum += at >= 148 && at < 156 ? 0x20 : (block[at] ?? 0);
  return sum;
}

const PAX_KEYS: ReadonlySet<string> = new Set(['linkpath', 'path', 'size']);

/** Others are not kept: headers may go on without an entry for as long as the archive does. */
function takePaxRecords(body: Buffer, into: Map<string, string>): void {
  const isSound = eachPaxRecord(body, (key, value) => {
    if (PAX_KEYS.has(key)) into.set(key, value.toString('utf8'));
  });
  if (!isSound) throw refuse('The archive is damaged.');
}

const KINDS: Readonly<Record<string, TarHeader['kind']>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '5': 'directory',
  '2': 'symlink',
};

/**
 * Reads entries one after another. Throws `SBX_PATH_REFUSED` on one that would leave its place or is of another kind; on a
 * link that only the rest of the archive could make right, after the last entry.
 */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const reader = new ByteReader(source);
  const links = new ArchiveLinks();
  let extended = new Map<string, string>();
  for (;;) {
    const block = await reader.exactly(BLOCK);
    // The end of an archive is a block of zeros (POSIX pax): without it the archive was cut off.
    if (block === null) throw refuse('The archive is cut off.');
    if (block.every((byte) => byte === 0)) break;
    if (numberAt(block, 148, 8) !== checksumOf(block)) throw refuse('The archive is damaged.');
    const type = String.fromCharCode(block[156] ?? 0);
    // Only the header of an entry has its size in a pax record.
    const given = 'xgLK'.includes(type) ? undefined : extended.get('size');
    const size = given === undefined ? numberAt(block, 124, 12) : paxSize(given);
    if (!Number.isSafeInteger(size) || size < 0) throw refuse('The archive is damaged.');
    const padding = (BLOCK - (size % BLOCK)) % BLOCK;
    if ('xgLK'.includes(type)) {
      if (size > MAX_EXTENSION_BYTES) throw refuse('The archive holds a header that is too large.');
      const body = await reader.exactly(size);
      await reader.skip(padding);
      if (body === null) throw refuse('The archive is cut off.');
      if (type === 'x') takePaxRecords(body, extended);
      if (type === 'L') extended.set('path', textAt(body, 0, body.length));
      if (type === 'K') extended.set('linkpath', textAt(body, 0, body.length));
      continue;
    }
    const kind = KINDS[type];
    if (kind === undefined)
      throw refuse('The archive holds something other than files, directories and links.');
    // In archives of GNU tar ("ustar " without a zero byte) something else lies where the prefix is.
    const prefix = textAt(block, 257, 6) === 'ustar' ? textAt(block, 345, 155) : '';
    const plain = textAt(block, 0, 100);
    const name = checkedName(extended.get('path') ?? (prefix === '' ? plain : `${prefix}/${plain}`));
    const linkTarget = kind === 'symlink' ? (extended.get('linkpath') ?? textAt(block, 157, 100)) : null;
    extended = new Map();
    refuseLink(links.take(name, kind, linkTarget));
    const length = kind === 'file' ? size : 0;
    const body = reader.take(length);
    yield {
      name,
      kind,
      mode: numberAt(block, 100, 8) & 0o777,
      size: length,
      modifiedAt: numberAt(block, 136, 12) * 1000,
      linkTarget,
      body: body.bytes(),
    };
    await reader.skip(body.left() + (kind === 'file' ? padding : size + padding));
  }
  if (extended.size > 0) throw refuse('The archive is cut off.');
  refuseLink(links.finish());
  await reader.drain();
}

function octal(block: Buffer, offset: number, length: number, value: number): void {
  block.write(
    `${Math.floor(value)
      .toString(8)
      .padStart(length - 1, '0')}\0`,
    offset,
    length,
    'latin1',
  );
}

function headerBlock(header: TarHeader, type: string, name: string, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  Buffer.from(name).copy(block, 0, 0, 100);
  octal(block, 100, 8, header.mode & 0o777);
  octal(block, 108, 8, 0);
  octal(block, 116, 8, 0);
  octal(block, 124, 12, size);
  octal(block, 136, 12, Math.max(0, header.modifiedAt / 1000));
  block.write(type, 156, 'latin1');
  Buffer.from(header.linkTarget ?? '').copy(block, 157, 0, 100);
  block.write('ustar\x0000', 257, 'latin1');
  octal(block, 148, 7, checksumOf(block));
  block[155] = 0x20;
  return block;
}

function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (String(length).length !== String(rest).length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

function padded(data: Buffer): Buffer {
  return Buffer.concat([data, Buffer.alloc((BLOCK - (data.length % BLOCK)) % BLOCK)]);
}

const MAX_USTAR_SIZE = 0o77777777777;

function* headerBlocks(header: TarHeader): Generator<Buffer> {
  const name = header.kind === 'directory' ? `${header.name}/` : header.name;
  let records = '';
  if (Buffer.byteLength(name) > 100) records += paxRecord('path', name);
  if (Buffer.byteLength(header.linkTarget ?? '') > 100)
    records += paxRecord('linkpath', header.linkTarget ?? '');
  if (header.size > MAX_USTAR_SIZE) records += paxRecord('size', String(header.size));
  if (records !== '') {
    const body = Buffer.from(records);
    yield headerBlock({ ...header, linkTarget: null, mode: 0o644 }, 'x', 'PaxHeader', body.length);
    yield padded(body);
  }
  const type = { file: '0', directory: '5', symlink: '2' }[header.kind];
  yield headerBlock(header, type, name, header.size > MAX_USTAR_SIZE ? 0 : header.size);
}

/**
 * Writes entries. Throws `SBX_PATH_REFUSED` on names and links that `readTar` refuses; a body of another length than its
 * header says ends the stream with an error.
 */
export async function* writeTar(entries: AsyncIterable<TarEntry>): AsyncGenerator<Uint8Array> {
  const links = new ArchiveLinks();
  for await (const entry of entries) {
    refuseLink(links.take(checkedName(entry.name), entry.kind, entry.linkTarget));
    yield* headerBlocks(entry);
    if (entry.kind !== 'file') continue;
    let written = 0;
    for await (const chunk of entry.body) {
      written += chunk.length;
      if (written > entry.size) throw new Error(`${entry.name} grew while it was read.`);
      yield chunk;
    }
    if (written < entry.size) throw new Error(`${entry.name} shrank while it was read.`);
    const padding = (BLOCK - (written % BLOCK)) % BLOCK;
    if (padding > 0) yield Buffer.alloc(padding);
  }
  refuseLink(links.finish());
  yield Buffer.alloc(2 * BLOCK);
}
