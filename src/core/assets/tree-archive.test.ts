import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TarEntry, TarHeader } from '../../archive/tar/format.ts';
import { readTreeArchive, writeTreeArchive } from './tree-archive.ts';

const directory = mkdtempSync(join(tmpdir(), 'sbx-tar-'));
afterAll(() => rmSync(directory, { recursive: true }));

async function* chunked(data: Uint8Array, size = 777): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
}

async function bytesOf(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of source) parts.push(part);
  return Buffer.concat(parts);
}

async function entriesOf(archive: Uint8Array): Promise<(TarHeader & { text: string })[]> {
  const found = [];
  for await (const entry of readTreeArchive(chunked(archive))) {
    found.push({ ...entry, text: (await bytesOf(entry.body)).toString() });
  }
  return found;
}

function entry(name: string, parts: Partial<TarEntry> = {}, text = ''): TarEntry {
  const size = Buffer.byteLength(text);
  const body = chunked(Buffer.from(text));
  return {
    name,
    kind: 'file',
    mode: 0o640,
    size,
    modifiedAtMs: 1_700_000_000_000,
    linkTarget: null,
    body,
    ...parts,
  };
}

async function* of(...entries: TarEntry[]): AsyncGenerator<TarEntry> {
  yield* entries;
}

/** Returns an archive whose first header says something else, as no writer of ours would. */
function forged(archive: Buffer, { name, linkTarget }: { name?: string; linkTarget?: string }): Buffer {
  const put = (text: string | undefined, offset: number) => {
    if (text === undefined) return;
    archive.fill(0, offset, offset + 100);
    archive.write(text, offset);
  };
  put(name, 0);
  put(linkTarget, 157);
  archive.write(' '.repeat(8), 148, 'latin1');
  const sum = archive.subarray(0, 512).reduce((all, byte) => all + byte, 0);
  archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return archive;
}

const long = `${'deep/'.repeat(40)}${'ü'.repeat(60)}.txt`;

describe('tar', () => {
  it('a written archive is read by the system’s tar', async () => {
    const link = entry('dir/link', { kind: 'symlink', linkTarget: 'a b.txt', size: 0 });
    const archive = await bytesOf(
      writeTreeArchive(
        of(
          entry('dir', { kind: 'directory', size: 0 }),
          entry('dir/a b.txt', {}, 'hello'),
          link,
          entry(long, {}, 'far'),
        ),
      ),
    );
    const out = join(directory, 'out');
    mkdirSync(out);
    execFileSync('tar', ['-xf', '-', '-C', out], { input: archive });
    expect(readFileSync(join(out, 'dir/a b.txt'), 'utf8')).toBe('hello');
    expect(readlinkSync(join(out, 'dir/link'))).toBe('a b.txt');
    expect(readFileSync(join(out, long), 'utf8')).toBe('far');
  });

  describe.each(['gnu', 'pax', 'ustar'])('made by the system’s tar as %s', (format) => {
    const tree = join(directory, `in-${format}`);
    const far = format === 'ustar' ? 'x'.repeat(90) : long;
    beforeAll(() => {
      mkdirSync(join(tree, far, '..'), { recursive: true });
      writeFileSync(join(tree, far), 'y'.repeat(100_000));
      writeFileSync(join(tree, 'empty'), '');
      symlinkSync('empty', join(tree, 'link'));
    });
    it('an archive made by the system’s tar is read', async () => {
      const archive = execFileSync('tar', [`--format=${format}`, '-cf', '-', '-C', tree, '.'], {
        maxBuffer: 1e8,
      });
      const found = await entriesOf(archive);
      expect(found.find(({ name }) => name === far)?.text).toBe('y'.repeat(100_000));
      expect(found.find(({ name }) => name === 'empty')).toMatchObject({ kind: 'file', size: 0 });
      expect(found.find(({ name }) => name === 'link')).toMatchObject({
        kind: 'symlink',
        linkTarget: 'empty',
      });
      expect(found.find(({ name }) => name === '.')?.kind).toBe('directory');
    });
  });

  it('a tar reader skips the unread rest of an entry', async () => {
    const archive = await bytesOf(
      writeTreeArchive(of(entry('a', {}, 'x'.repeat(5000)), entry('b', {}, 'second'))),
    );
    const names = [];
    for await (const { name } of readTreeArchive(chunked(archive))) names.push(name);
    expect(names).toEqual(['a', 'b']);
  });

  it.each(['/etc/passwd', '../up', 'a/../../up', '..', 'a/..'])(
    'tar: the name %s is refused, read or written',
    async (name) => {
      const archive = forged(await bytesOf(writeTreeArchive(of(entry('x', {}, 'x')))), { name });
      await expect(entriesOf(archive)).rejects.toMatchObject({ code: 'SBX_PATH_REFUSED' });
      const written = bytesOf(writeTreeArchive(of(entry(name, {}, 'x'))));
      await expect(written).rejects.toMatchObject({ code: 'SBX_PATH_REFUSED' });
    },
  );

  it.each(['/etc', '..', 'a/../../..', '../x'])(
    'tar: a link at the top to %s is refused, read or written',
    async (linkTarget) => {
      const link = { kind: 'symlink' as const, size: 0 };
      const plain = await bytesOf(writeTreeArchive(of(entry('link', { ...link, linkTarget: 'x' }))));
      await expect(entriesOf(forged(plain, { linkTarget }))).rejects.toMatchObject({
        code: 'SBX_PATH_REFUSED',
      });
      const written = bytesOf(writeTreeArchive(of(entry('link', { ...link, linkTarget }))));
      await expect(written).rejects.toMatchObject({ code: 'SBX_PATH_REFUSED' });
    },
  );

  it('tar: names with line breaks, tabs and quotes arrive as they are', async () => {
    const names = ['a\nb', 'a\tb', '"', "'", '$x', '-rf', 'a b', '*'];
    const archive = await bytesOf(writeTreeArchive(of(...names.map((name) => entry(name, {}, 'x')))));
    expect((await entriesOf(archive)).map(({ name }) => name)).toEqual(names);
  });

  it('a tar reader refuses hard links and devices', async () => {
    for (const type of ['1', '3', '4', '6']) {
      const archive = await bytesOf(writeTreeArchive(of(entry('odd', { size: 0 }))));
      const sum =
        Number.parseInt(archive.toString('latin1', 148, 154), 8) - '0'.charCodeAt(0) + type.charCodeAt(0);
      archive.write(type, 156, 'latin1');
      archive.write(`${sum.toString(8).padStart(6, '0')}\0`, 148, 'latin1');
      await expect(entriesOf(archive)).rejects.toMatchObject({ code: 'SBX_PATH_REFUSED' });
    }
  });

  it('a tar reader refuses archives that are damaged or cut off', async () => {
    const archive = await bytesOf(writeTreeArchive(of(entry('a', {}, 'x'.repeat(2000)))));
    await expect(entriesOf(archive.subarray(0, 1500))).rejects.toThrow();
    archive[0] = 0x7a;
    await expect(entriesOf(archive)).rejects.toMatchObject({ code: 'SBX_PATH_REFUSED' });
  });
});
