import { execFileSync } from 'node:child_process';
import { chmod, lstat, mkdir, mkdtemp, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TarHeader } from '../archive/tar/format.ts';
import { tarPadding } from '../archive/tar/format.ts';
import { readTar } from '../archive/tar/read-tar.ts';
import { encodeTarHeader, TAR_END } from '../archive/tar/write-tar.ts';
import { readTreeArchive as readOnServer } from '../core/assets/tree-archive.ts';
import { packTree } from './pack-tree.ts';
import { unpackTree } from './unpack-tree.ts';

const FILE: TarHeader = {
  name: 'f',
  kind: 'file',
  mode: 0o644,
  size: 0,
  modifiedAtMs: 1_000_000,
  linkTarget: null,
};
const LONG = `${'d'.repeat(120)}/${'n'.repeat(150)}.txt`;

async function* archive(...entries: readonly (Partial<TarHeader> & { content?: string })[]) {
  for (const { content = '', ...header } of entries) {
    const size = Buffer.byteLength(content);
    yield encodeTarHeader({ ...FILE, ...header, size });
    yield Buffer.from(content);
    yield tarPadding(size);
  }
  yield TAR_END;
}

async function collect(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of source) parts.push(part);
  return Buffer.concat(parts);
}

async function* inPieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe('tar', () => {
  let top = '';
  let source = '';
  beforeEach(async () => {
    top = await mkdtemp(join(tmpdir(), 'tar-'));
    source = join(top, 'source');
    await mkdir(join(source, LONG, '..'), { recursive: true });
    await mkdir(join(source, 'empty'));
    await writeFile(join(source, LONG), 'long');
    await writeFile(join(source, 'run.sh'), '#!/bin/sh\n');
    await chmod(join(source, 'run.sh'), 0o755);
    await writeFile(join(source, 'ünïcode'), Buffer.alloc(100_000, 7));
    await symlink('run.sh', join(source, 'link'));
  });
  afterEach(() => rm(top, { recursive: true, force: true }));

  it.each([1, 511, 512, 513, 100_000])('a tree survives a round trip in pieces of %i bytes', async (size) => {
    const bytes = await collect(packTree(source));
    const target = join(top, 'target');
    const step = size === 1 ? 100 : size;
    expect(await unpackTree(inPieces(bytes, step), target)).toEqual({ files: 3 });
    expect(await readFile(join(target, LONG), 'utf8')).toBe('long');
    expect((await lstat(join(target, 'run.sh'))).mode & 0o777).toBe(0o755);
    expect((await readFile(join(target, 'ünïcode'))).length).toBe(100_000);
    expect(await readlink(join(target, 'link'))).toBe('run.sh');
    expect((await lstat(join(target, 'empty'))).isDirectory()).toBe(true);
  });

  it('a packed tree is read by the server and by other programs', async () => {
    const bytes = await collect(packTree(source));
    const names: string[] = [];
    for await (const entry of readOnServer(inPieces(bytes, 4096))) names.push(entry.name);
    expect(names).toContain(LONG);
    await writeFile(join(top, 'a.tar'), bytes);
    const listed = execFileSync('tar', ['-tf', join(top, 'a.tar'), '--quoting-style=literal'], {
      encoding: 'utf8',
    });
    expect(listed.split('\n')).toContain(LONG);
    expect(listed.split('\n')).toContain('ünïcode');
  });

  it('archives of other programs are read', async () => {
    for (const format of ['gnu', 'pax', 'ustar']) {
      if (format === 'ustar') await rm(join(source, LONG.split('/')[0] as string), { recursive: true });
      const bytes = execFileSync('tar', ['-C', source, `--format=${format}`, '-cf', '-', '.']);
      const target = join(top, format);
      await unpackTree(inPieces(bytes, 1000), target);
      expect(await readFile(join(target, 'run.sh'), 'utf8')).toBe('#!/bin/sh\n');
      if (format !== 'ustar') expect(await readFile(join(target, LONG), 'utf8')).toBe('long');
    }
  });

  it('packing leaves out names in the ignore files, and reports what an archive cannot hold', async () => {
    await writeFile(join(source, '.gitignore'), '*.sh\nempty/\n');
    await writeFile(join(source, '.sandboxerignore'), '!run.sh\n');
    await symlink('/etc/passwd', join(source, 'out'));
    const skipped: string[] = [];
    const names: string[] = [];
    for await (const entry of readTar(packTree(source, { onSkipped: (name) => skipped.push(name) })))
      names.push(entry.name);
    expect(names).toContain('run.sh');
    expect(names).not.toContain('empty');
    expect(names).not.toContain('out');
    expect(skipped).toEqual(['out']);
    const all: string[] = [];
    for await (const entry of readTar(packTree(source, { ignore: false }))) all.push(entry.name);
    expect(all).toContain('empty');
  });

  it('sizes beyond the octal field are kept', async () => {
    const header = { ...FILE, size: 2 ** 34 };
    const blocks = encodeTarHeader(header);
    for await (const entry of readTar(inPieces(blocks, 512))) {
      expect(entry.size).toBe(2 ** 34);
      break;
    }
  });

  it.each(['../out', '/out', 'a/../../out'])('unpacking refuses %s', async (name) => {
    await expect(unpackTree(archive({ name, content: 'x' }), join(top, 't'))).rejects.toThrow(
      /leave its place/,
    );
  });

  it('unpacking writes nothing through a link, be it from the archive or already there', async () => {
    const outside = join(top, 'outside');
    await mkdir(outside);
    const target = join(top, 'target');
    await mkdir(target);
    await symlink(outside, join(target, 'there'));
    await expect(unpackTree(archive({ name: 'there/x', content: 'x' }), target)).rejects.toThrow(
      /in the way/,
    );
    const evil = archive({ name: 'l', kind: 'symlink', linkTarget: 'd' }, { name: 'l/x', content: 'x' });
    await expect(unpackTree(evil, join(top, 'second'))).rejects.toThrow();
    const skipped: string[] = [];
    const away = archive({ name: 'a', kind: 'symlink', linkTarget: '../../x' }, { name: 'b', content: 'b' });
    await unpackTree(away, join(top, 'third'), { onSkipped: (name) => skipped.push(name) });
    expect(skipped).toEqual(['a']);
    expect(await collect(inPieces(Buffer.from('ok'), 1))).toEqual(Buffer.from('ok'));
    await expect(lstat(join(outside, 'x'))).rejects.toThrow();
  });

  it('unpacking replaces a link with the file instead of following it, and drops set-id bits', async () => {
    const victim = join(top, 'victim');
    await writeFile(victim, 'safe');
    const target = join(top, 'target');
    await mkdir(target);
    await symlink(victim, join(target, 'f'));
    await unpackTree(archive({ name: 'f', mode: 0o4755, content: 'new' }), target);
    expect(await readFile(victim, 'utf8')).toBe('safe');
    expect((await lstat(join(target, 'f'))).mode & 0o7777).toBe(0o755);
  });

  it('an archive that is cut off or damaged is reported', async () => {
    const bytes = await collect(archive({ content: 'hello' }));
    await expect(unpackTree(inPieces(bytes.subarray(0, 515), 100), join(top, 't'))).rejects.toThrow(
      /cut off/,
    );
    bytes[0] = 0x41;
    await expect(unpackTree(inPieces(bytes, 100), join(top, 't'))).rejects.toThrow(/damaged/);
  });
});
