import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bytesOfName, nameOfBytes } from '../archive/file-name.ts';
import { readTar } from '../archive/tar/read-tar.ts';
import { packPath, packTree } from './pack-tree.ts';
import { unpackTree } from './unpack-tree.ts';

const bytes = (text: string) => Buffer.from(text, 'latin1');
const LONG = `\xfe${'n'.repeat(150)}\xe2\x82`;
const FILES = ['bad\xfe', 'bad\xff', 'dir\xed\xa0\x80/\xc3\xa4\xc3', LONG];

describe('a name of any bytes', () => {
  it.each([
    '',
    'plain',
    'ä€😀',
    'a\xff',
    '\xc3',
    '\xe2\x82',
    '\xed\xb3\xbe',
    '\xf0\x9f\x98',
    '\xc0\x80',
    '\xf8a',
  ])('%j is text and the same bytes again', (text) => {
    const original = /[^\0-\xff]/.test(text) ? Buffer.from(text) : bytes(text);
    expect(bytesOfName(nameOfBytes(original))).toEqual(original);
  });

  it('a name of any bytes is distinct from others, and text is unchanged', () => {
    expect(nameOfBytes(Buffer.from('ä€😀'))).toBe('ä€😀');
    expect(nameOfBytes(bytes('bad\xfe'))).not.toBe(nameOfBytes(bytes('bad\xff')));
  });
});

describe.skipIf(process.platform !== 'linux')('trees with names of any bytes', () => {
  let top = '';
  let source = '';
  let target = '';
  const at = (directory: string, name: string) => Buffer.concat([Buffer.from(`${directory}/`), bytes(name)]);
  beforeEach(() => {
    top = mkdtempSync(join(tmpdir(), 'names-'));
    [source, target] = [join(top, 'source'), join(top, 'target')];
    mkdirSync(source);
    mkdirSync(at(source, 'dir\xed\xa0\x80'));
    for (const name of FILES) writeFileSync(at(source, name), name);
    symlinkSync(bytes('bad\xff'), at(source, 'link\x80'));
  });
  afterEach(() => rmSync(top, { recursive: true, force: true }));

  it('trees with names of any bytes are packed and unpacked as they are', async () => {
    expect(await unpackTree(packTree(source), target)).toEqual({ files: FILES.length });
    execFileSync('diff', ['-r', source, target]);
    expect(readFileSync(at(target, 'link\x80'), 'utf8')).toBe('bad\xff');
  });

  it('trees with names of any bytes are the same to other programs', async () => {
    const parts: Buffer[] = [];
    for await (const part of packTree(source)) parts.push(part);
    writeFileSync(join(top, 'a.tar'), Buffer.concat(parts));
    mkdirSync(target);
    execFileSync('tar', ['-xf', join(top, 'a.tar'), '-C', target]);
    execFileSync('diff', ['-r', source, target]);
  });

  it('trees with names of any bytes are left out, with a message, where a server lists them as text', async () => {
    const skipped: string[] = [];
    const names: string[] = [];
    writeFileSync(join(source, 'good'), '');
    const onSkipped = (_name: string, reason: string) => skipped.push(reason);
    for await (const { name } of readTar(packPath(source, { onSkipped }))) names.push(name);
    expect(names).toEqual(['good']);
    expect(skipped).toEqual(Array.from({ length: 5 }, () => 'its name is not UTF-8'));
  });
});
