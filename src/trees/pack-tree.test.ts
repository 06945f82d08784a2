import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { PackOptions } from './pack-tree.ts';
import { findTree } from './pack-tree.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'sandboxer-pack-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function put(files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
}

async function packed(options: PackOptions = {}) {
  const skipped: string[] = [];
  const names: string[] = [];
  const onSkipped = (path: string) => skipped.push(path);
  for await (const { header } of findTree(dir, { ...options, onSkipped })) {
    if (header.kind !== 'directory') names.push(header.name);
  }
  return { names, skipped };
}

it('packTree reads three kinds of ignore files, the later ones last', async () => {
  put({
    '.gitignore': '*.log\nbuild/\n',
    '.dockerignore': 'docs\n*\n!src\n!keep.log\n!build\n',
    '.sandboxerignore': '!docs\nsrc/tmp\n',
    'keep.log': '',
    'other.log': '',
    'docs/a.md': '',
    'src/docs/b.md': '',
    'src/tmp/x': '',
    'compose.yml': '',
    'Dockerfile.dev': '',
    'README.md': '',
  });
  const { names } = await packed();
  expect(names).toEqual([
    '.dockerignore',
    'Dockerfile.dev',
    'compose.yml',
    'docs/a.md',
    'keep.log',
    'src/docs/b.md',
  ]);
});

it('packTree holds back .git and likely secrets, unless they are asked for', async () => {
  put({ '.git/config': '', '.env': '', '.env.example': '', 'a/.npmrc': '', 'a/id_rsa': '', 'a/x.ts': '' });
  expect(await packed()).toEqual({
    names: ['.env.example', 'a/x.ts'],
    skipped: ['.env', 'a/.npmrc', 'a/id_rsa'],
  });
  expect((await packed({ git: true, secrets: true })).names).toHaveLength(6);
  expect((await packed({ secrets: ['.env'] })).names).toContain('.env');
});

it('no ignore file takes a likely secret back, and none is read through a link', async () => {
  put({
    '.env': 'x',
    '.Env.Local': 'x',
    'rules.txt': '!.env\n',
    'sub/.gitignore': '!id_rsa\n',
    'sub/id_rsa': 'x',
  });
  for (const name of ['.gitignore', '.dockerignore', '.sandboxerignore'])
    put({ [name]: '!.env\n!.env\n!.Env.Local\n' });
  expect((await packed()).names).toEqual([
    '.dockerignore',
    '.gitignore',
    '.sandboxerignore',
    'rules.txt',
    'sub/.gitignore',
  ]);
  rmSync(join(dir, '.gitignore'));
  symlinkSync('rules.txt', join(dir, '.gitignore'));
  await expect(packed()).rejects.toThrow('.gitignore cannot be read');
});

it('packTree leaves out links that lead out of the tree', async () => {
  put({ 'a.txt': '' });
  symlinkSync('a.txt', join(dir, 'in'));
  symlinkSync('/etc/passwd', join(dir, 'out'));
  expect(await packed()).toEqual({ names: ['a.txt', 'in'], skipped: ['out'] });
});
