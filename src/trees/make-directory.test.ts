import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { makeDirectory, makeOwnDirectory } from './make-directory.ts';

const root = mkdtempSync(join(tmpdir(), 'make-directory-'));
afterAll(() => rmSync(root, { recursive: true }));

it('makeDirectory makes parents, and accepts an existing directory', () => {
  const path = join(root, 'a/b/c');
  makeDirectory(path, 0o700);
  makeDirectory(path, 0o700);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  symlinkSync(path, join(root, 'link'));
  makeDirectory(join(root, 'link'), 0o700);
});

it('makeDirectory refuses a path that cannot be a directory', () => {
  writeFileSync(join(root, 'file'), '');
  expect(() => makeDirectory(join(root, 'file'), 0o700)).toThrow('EEXIST');
  expect(() => makeDirectory(join(root, 'file/below'), 0o700)).toThrow('ENOTDIR');
  symlinkSync(join(root, 'nowhere/x'), join(root, 'dangling'));
  expect(() => makeDirectory(join(root, 'dangling'), 0o700)).toThrow();
});

it.runIf(process.platform === 'linux')('makeDirectory returns from a path below /proc', () => {
  expect(() => makeDirectory('/proc/sandboxer/state', 0o700)).toThrow('ENOENT');
  expect(() => makeOwnDirectory('/proc')).toThrow();
});
