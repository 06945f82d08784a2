/** Every reader of archives takes the same bytes for the same entries, and refuses what is cut off or says two things. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readTar as readOnClient } from '../../src/archive/tar/read-tar.ts';
import { readTreeArchive as readOnServer } from '../../src/core/assets/tree-archive.ts';
import { indexTar } from '../../src/extensions/local/assets/tar-index.ts';
import type { TarItem } from '../support/image-archives.ts';
import { tarOf } from '../support/image-archives.ts';

const BLOCK = 512;
const folder = mkdtempSync(join(tmpdir(), 'sandboxer-readers-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function* chunked(data: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < data.length; at += 700) yield data.subarray(at, at + 700);
}

async function streamed(read: typeof readOnClient | typeof readOnServer, archive: Buffer): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, kind, size, body } of read(chunked(archive))) {
    let bytes = 0;
    for await (const part of body) bytes += part.length;
    expect(bytes).toBe(size);
    if (kind === 'file') found.push(`${name} ${size}`);
  }
  return found;
}

/** Each resolves with the files of an archive, as `NAME SIZE`. */
const READERS: Readonly<Record<string, (archive: Buffer) => Promise<string[]>>> = {
  'the client': (archive) => streamed(readOnClient, archive),
  'extensions and uploads': (archive) => streamed(readOnServer, archive),
  'the index of images': async (archive) => {
    const path = join(folder, 'archive.tar');
    writeFileSync(path, archive);
    return [...(await indexTar(path))].map(([name, { size }]) => `${name} ${size}`);
  },
};

const LAST: Readonly<Record<string, TarItem>> = {
  'a file': { name: 'file', body: 'x'.repeat(1300) },
  'an empty file': { name: 'empty', body: '' },
  'a directory': { name: 'directory/', type: '5' },
  'a link': { name: 'link', type: '2', link: 'file' },
  'a long name': { name: 'x', body: 'y', pax: { path: `${'n'.repeat(200)}/file` } },
  'a global header': { name: 'global', type: 'g', body: '13 comment=x\n' },
};

const header = (body: string | Buffer, type = 'x'): TarItem => ({ name: 'header', type, body });
const hidden = tarOf([{ name: 'hidden', body: 'y' }]).subarray(0, 2 * BLOCK);
const recordOf = (key: string, value: string) => `${` ${key}=${value}\n`.length + 2} ${key}=${value}\n`;

/** Archives of which another reader could see something else; the files that are in them. */
const AMBIGUOUS: Readonly<Record<string, [items: TarItem[], files: string[]]>> = {
  'a size in the extended header alone': [
    [{ name: 'a', body: hidden, size: 0, pax: { size: '1024' } }, { name: 'b' }],
    ['a 1024', 'b 0'],
  ],
  'a size in the extended header that is less': [
    [
      { name: 'a', size: 1024, pax: { size: '0' } },
      { name: 'b', body: 'z' },
    ],
    ['a 0', 'b 1'],
  ],
  'a size before a long name': [
    [header(recordOf('size', '1024')), header('long', 'L'), { name: 'a', body: hidden, size: 0 }],
    ['long 1024'],
  ],
  'a path within another value': [[header(recordOf('comment', 'x\n11 path=no')), { name: 'a' }], ['a 0']],
  'a prefix of GNU tar, which is none': [[{ name: 'a', body: 'x' }], ['a 1']],
};

const REFUSED: Readonly<Record<string, TarItem[]>> = {
  ...Object.fromEntries(
    ['0x10', '1e1', ' 1', '+1', '-1', '', '1.0', '9'.repeat(17), '9'.repeat(30)].map((size) => [
      `the size ${JSON.stringify(size)}`,
      [{ name: 'a', body: 'x', pax: { size } }],
    ]),
  ),
  'a record whose length is not decimal': [header('0xb path=b\n'), { name: 'a' }],
  'a record that does not end in a line break': [header('11 path=bcd'), { name: 'a' }],
  'a record without a value': [header('7 path\n'), { name: 'a' }],
  'a record beyond its header': [header('99 path=b\n'), { name: 'a' }],
  'an extended header of more than 1 MiB': [header('x'.repeat(1_048_577)), { name: 'a' }],
  'a long name of more than 1 MiB': [header('x'.repeat(1_048_577), 'L'), { name: 'a' }],
  'a long link of more than 1 MiB': [header('x'.repeat(1_048_577), 'K'), { name: 'a' }],
  'an extended header without its entry': [{ name: 'a' }, header(recordOf('path', 'other'))],
};

describe.each(Object.entries(READERS))('%s', (_, filesOf) => {
  it.each(Object.entries(LAST))(
    '%s at the end: refused at every cut, whole with one block of zeros',
    async (_name, item) => {
      const archive = tarOf([{ name: 'first', body: 'first' }, item]);
      const files = await filesOf(archive);
      expect(files[0]).toBe('first 5');
      expect(await filesOf(archive.subarray(0, -BLOCK))).toEqual(files);
      const cuts = Array.from({ length: archive.length / BLOCK - 1 }, (_none, block) => block * BLOCK);
      const taken: number[] = [];
      for (const cut of cuts
        .flatMap((at) => [at, at + 1, at + 255, at + 511])
        .filter((at) => at < archive.length - BLOCK)) {
        await filesOf(archive.subarray(0, cut)).then(
          () => taken.push(cut),
          () => {},
        );
      }
      expect(taken).toEqual([]);
    },
  );

  it.each(Object.entries(AMBIGUOUS))('%s: read as the agent reads it', async (name, [items, files]) => {
    const archive = tarOf(items);
    if (name.startsWith('a prefix')) withGnuMagic(archive);
    expect(await filesOf(archive)).toEqual(files);
  });

  it.each(Object.entries(REFUSED))('%s is refused', async (_name, items) => {
    await expect(filesOf(tarOf(items))).rejects.toThrow(/archive|tar/i);
  });

  it.each(['0000000001x', '9', '1 1', '-1'])('the size field %j is refused', async (field) => {
    const archive = tarOf([{ name: 'a', body: 'x' }]);
    archive.fill(0, 124, 136).write(field, 124, 'latin1');
    withChecksum(archive);
    await expect(filesOf(archive)).rejects.toThrow(/damaged/);
  });
});

/** GNU tar has times of its own where other archives have a prefix. */
function withGnuMagic(archive: Buffer): void {
  archive.write('ustar  \0', 257, 'latin1');
  archive.write('14724661022\0', 345, 'latin1');
  withChecksum(archive);
}

/** Corrects the checksum of the first header. */
function withChecksum(archive: Buffer): void {
  archive.write('        ', 148, 'latin1');
  const sum = archive.subarray(0, BLOCK).reduce((all, byte) => all + byte, 0);
  archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
}
