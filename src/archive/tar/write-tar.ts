import { ArchiveLinks } from '../archive-links.ts';
import { nameRefusal } from '../entry-name.ts';
import { bytesOfName } from '../file-name.ts';
import { partsOf } from '../link-judge.ts';
import type { TarEntry, TarHeader } from './format.ts';
import { BLOCK, checksumOf, LARGEST_OCTAL, LONGEST_NAME, TarError, tarPadding } from './format.ts';
import { linkRefusal } from './read-tar.ts';

export const TAR_END = Buffer.alloc(2 * BLOCK);

const TYPE_OF = { file: '0', directory: '5', symlink: '2' } as const;

interface Fields {
  readonly name: Buffer;
  readonly type: string;
  readonly mode: number;
  readonly size: number;
  /** Seconds. */
  readonly mtime: number;
  readonly link?: Buffer;
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`;
}

function headerBlock({ name, type, mode, size, mtime, link }: Fields): Buffer {
  const block = Buffer.alloc(BLOCK);
  name.copy(block, 0, 0, LONGEST_NAME);
  block.write(octal(mode & 0o7777, 8), 100, 'latin1');
  block.write(octal(0, 8), 108, 'latin1');
  block.write(octal(0, 8), 116, 'latin1');
  block.write(octal(Math.min(size, LARGEST_OCTAL), 12), 124, 'latin1');
  block.write(octal(Math.max(0, Math.min(mtime, LARGEST_OCTAL)), 12), 136, 'latin1');
  block.write(type, 156, 'latin1');
  link?.copy(block, 157, 0, LONGEST_NAME);
  block.write('ustar\x0000', 257, 'latin1');
  block.write(`${checksumOf(block).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/**
 * Formats `<length> <key>=<value>
 * `, where the length counts itself.
 */
function paxRecord(key: string, value: Buffer): Buffer {
  const body = ` ${key}=\n`.length + value.length;
  let length = body + String(body).length;
  length = body + String(length).length;
  return Buffer.concat([Buffer.from(`${length} ${key}=`), value, Buffer.from('\n')]);
}

/** Formats a ustar header, with a pax header where a name or a size needs one. */
export function encodeTarHeader(header: TarHeader): Buffer {
  const { kind, mode, size } = header;
  const name = bytesOfName(kind === 'directory' && header.name !== '.' ? `${header.name}/` : header.name);
  const link = bytesOfName(header.linkTarget ?? '');
  const mtime = Math.floor(header.modifiedAtMs / 1000);
  const records: Buffer[] = [];
  if (name.length > LONGEST_NAME) records.push(paxRecord('path', name));
  if (link.length > LONGEST_NAME) records.push(paxRecord('linkpath', link));
  if (size > LARGEST_OCTAL) records.push(paxRecord('size', Buffer.from(String(size))));
  const block = headerBlock({ name, type: TYPE_OF[kind], mode, size, mtime, link });
  if (records.length === 0) return block;
  const pax = Buffer.concat(records);
  return Buffer.concat([
    headerBlock({ name: Buffer.from('pax'), type: 'x', mode: 0o644, size: pax.length, mtime }),
    pax,
    tarPadding(pax.length),
    block,
  ]);
}

/**
 * Writes entries. Refuses the names and links that `readContainedTar` refuses; a body of another length than in its header ends
 * the stream with an error.
 */
export async function* writeTar(
  entries: AsyncIterable<TarEntry>,
  refuse: (detail: string) => Error = (detail) => new TarError(detail),
): AsyncGenerator<Uint8Array> {
  const links = new ArchiveLinks();
  for await (const entry of entries) {
    const { name, kind, size, mode } = entry;
    const hostile = nameRefusal(name);
    if (hostile !== null) throw refuse(hostile);
    const leading = links.take(partsOf(name).join('/') || '.', kind, entry.linkTarget);
    if (leading !== null) throw refuse(linkRefusal(leading));
    yield encodeTarHeader({ ...entry, mode: mode & 0o777 });
    if (kind !== 'file') continue;
    let written = 0;
    for await (const chunk of entry.body) {
      written += chunk.length;
      if (written > size) throw new Error(`${name} grew while it was read.`);
      yield chunk;
    }
    if (written < size) throw new Error(`${name} shrank while it was read.`);
    if (written % BLOCK > 0) yield tarPadding(written);
  }
  const leading = links.finish();
  if (leading !== null) throw refuse(linkRefusal(leading));
  yield TAR_END;
}
