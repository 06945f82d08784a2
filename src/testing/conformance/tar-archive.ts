/** Makes and reads tar archives by hand: a library could clean up the archives that the suite sends. */
import assert from 'node:assert/strict';

const BLOCK = 512;

export interface ArchiveEntry {
  readonly name: string;
  readonly type?: 'file' | 'directory' | 'symlink' | 'hardlink';
  readonly content?: Uint8Array | string;
  readonly linkTarget?: string;
  readonly mode?: number;
}

const TYPE_FLAG = { file: '0', hardlink: '1', symlink: '2', directory: '5' };

function blockOf({ name, type = 'file', content = '', linkTarget = '', mode = 0o644 }: ArchiveEntry): Buffer {
  const block = Buffer.alloc(BLOCK);
  assert.ok(Buffer.byteLength(name) <= 100, 'The name is too long for this writer.');
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  block.write(name, 0);
  block.write(octal(mode, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(Buffer.from(content).length, 11), 124);
  block.write(octal(1_700_000_000, 11), 136);
  block.write('        ', 148);
  block.write(TYPE_FLAG[type], 156);
  block.write(linkTarget, 157);
  block.write('ustar\x0000', 257, 'latin1');
  block.write(
    `${block
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  return block;
}

export function archiveOf(entries: readonly ArchiveEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const content = Buffer.from(entry.content ?? '');
    return [blockOf(entry), content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

export interface ArchivedFile {
  readonly name: string;
  readonly type: string;
  readonly content: Buffer;
  readonly linkTarget: string;
  readonly mode: number;
}

/** Returns the entries of an archive, with pax and GNU long names; `./` and trailing slashes are taken off names. */
export function entriesOf(archive: Buffer): ArchivedFile[] {
  const found: ArchivedFile[] = [];
  let longName: string | null = null;
  for (let at = 0; at + BLOCK <= archive.length; ) {
    const block = archive.subarray(at, at + BLOCK);
    if (block.every((byte) => byte === 0)) break;
    const text = (from: number, length: number) =>
      block.toString('utf8', from, from + length).split('\0')[0] ?? '';
    const sum = block.reduce((all, byte, index) => all + (index >= 148 && index < 156 ? 0x20 : byte), 0);
    assert.equal(Number.parseInt(text(148, 8), 8), sum, 'The archive is damaged.');
    const size = Number.parseInt(text(124, 12).trim() || '0', 8);
    const content = archive.subarray(at + BLOCK, at + BLOCK + size);
    assert.equal(content.length, size, 'The archive is cut off.');
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    const flag = text(156, 1) || '0';
    if (flag === 'x') longName = /(?:^|\n)\d+ path=([^\n]*)\n/.exec(content.toString())?.[1] ?? null;
    else if (flag === 'L') longName = content.toString().split('\0')[0] ?? null;
    if ('xgLK'.includes(flag)) continue;
    const prefix = text(345, 155);
    const full = longName ?? (prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`);
    longName = null;
    const type = Object.entries(TYPE_FLAG).find(([, value]) => value === flag)?.[0] ?? flag;
    const name = full.replace(/^(?:\.\/)+/, '').replace(/\/+$/, '');
    found.push({
      name,
      type,
      content,
      linkTarget: text(157, 100),
      mode: Number.parseInt(text(100, 8), 8) & 0o777,
    });
  }
  return found;
}
