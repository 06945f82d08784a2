import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ArchiveEntry } from '../../testing/conformance/tar-archive.ts';
import { archiveOf } from '../../testing/conformance/tar-archive.ts';
import { findTree, packTree } from '../../trees/pack-tree.ts';
import { HOST_EXECUTED, isHostExecuted } from './host-executed.ts';
import type { SyncOptions } from './sync-mirror.ts';
import { syncMirror } from './sync-mirror.ts';
import type { Tree } from './tree-entry.ts';
import { treeOfDirectory } from './tree-entry.ts';

let root: string;
let dir: string;
let base: Tree;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'sandboxer-mirror-'));
  dir = join(root, 'work');
  put('a.txt', 'a');
  put('b.txt', 'b');
  put('sub/c.txt', 'c');
  base = await treeOfDirectory(dir, () => true);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function put(path: string, text: string): void {
  mkdirSync(dirname(join(dir, path)), { recursive: true });
  writeFileSync(join(dir, path), text);
}

const text = (path: string) => readFileSync(join(dir, path), 'utf8');
const START: ArchiveEntry[] = [
  { name: 'a.txt', content: 'a' },
  { name: 'b.txt', content: 'b' },
  { name: 'sub/', type: 'directory' },
  { name: 'sub/c.txt', content: 'c' },
];

/** Returns the workspace with these changes. */
async function sync(changes: ArchiveEntry[], gone: string[] = [], options: SyncOptions = {}) {
  const names = [...gone, ...changes.map(({ name }) => name)];
  const entries = [...START.filter(({ name }) => !names.includes(name)), ...changes];
  async function* tar() {
    yield archiveOf(entries);
  }
  return syncMirror(tar(), dir, base, options);
}

describe('three ways', () => {
  it('sync takes changes made inside, and leaves changes made here', async () => {
    put('b.txt', 'mine');
    put('new-here.txt', 'mine');
    const report = await sync(
      [
        { name: 'a.txt', content: 'inside' },
        { name: 'deep/er/new.sh', content: '#!/bin/sh\n', mode: 0o4755 },
        { name: 'link', type: 'symlink', linkTarget: 'a.txt' },
      ],
      ['sub/c.txt', 'sub/'],
    );
    expect(report).toMatchObject({ deleted: ['sub', 'sub/c.txt'], conflicts: [], withheld: [] });
    expect(report.written).toEqual(['a.txt', 'deep/er/new.sh', 'link']);
    expect([text('a.txt'), text('b.txt'), text('new-here.txt')]).toEqual(['inside', 'mine', 'mine']);
    expect(statSync(join(dir, 'deep/er/new.sh')).mode & 0o7111).toBe(0o111);
    expect(readlinkSync(join(dir, 'link'))).toBe('a.txt');
    expect(existsSync(join(dir, 'sub'))).toBe(false);
  });

  it('sync reports files changed on both sides, and overwrites them only by force', async () => {
    put('a.txt', 'mine');
    const change = [{ name: 'a.txt', content: 'inside' }];
    const report = await sync(change, ['b.txt']);
    expect(report.conflicts).toEqual([{ path: 'a.txt', reason: 'it changed here and inside' }]);
    expect([text('a.txt'), existsSync(join(dir, 'b.txt'))]).toEqual(['mine', false]);
    expect((await sync(change, ['b.txt'], { force: true })).written).toEqual(['a.txt']);
    expect(text('a.txt')).toBe('inside');
  });

  it('a second sync continues from the state that the first left in common', async () => {
    await sync([{ name: 'a.txt', content: '1' }]);
    const second = await sync([{ name: 'a.txt', content: '2' }]);
    expect(second).toMatchObject({ written: ['a.txt'], conflicts: [] });
    put('a.txt', '3');
    expect((await sync([{ name: 'a.txt', content: '2' }])).written).toEqual([]);
    expect(text('a.txt')).toBe('3');
  });

  it.skipIf(process.platform !== 'linux')('sync keeps names of any bytes', async () => {
    const inside = Buffer.from(join(root, 'inside'));
    const named = (top: Buffer | string, name: string) =>
      Buffer.concat([Buffer.from(top), Buffer.from(`/${name}`, 'latin1')]);
    mkdirSync(named(inside, 'dir\xff'), { recursive: true });
    const names = ['bad\xfe', 'bad\xff', 'dir\xff/x'];
    for (const name of names) writeFileSync(named(inside, name), name, 'latin1');
    const own = new Map(base);
    const tree = () => packTree(inside.toString(), { ignore: false });
    const first = await syncMirror(tree(), dir, own, { force: true });
    expect(first.written).toHaveLength(4);
    for (const name of names) expect(readFileSync(named(dir, name), 'latin1')).toBe(name);
    expect(await syncMirror(tree(), dir, own)).toMatchObject({ written: [], deleted: [], conflicts: [] });
    rmSync(named(inside, 'bad\xfe'));
    const kept = new Map(JSON.parse(JSON.stringify([...own])) as [string, never][]);
    expect((await syncMirror(tree(), dir, kept)).deleted).toHaveLength(1);
    expect([existsSync(named(dir, 'bad\xfe')), existsSync(named(dir, 'bad\xff'))]).toEqual([false, true]);
    expect(isHostExecuted('.git\udcff')).toBe(true);
  });

  it('sync writes nothing in a dry run', async () => {
    const report = await sync([{ name: 'a.txt', content: 'inside' }], ['b.txt'], { dryRun: true });
    expect(report).toMatchObject({ written: ['a.txt'], deleted: ['b.txt'], dryRun: true });
    expect([text('a.txt'), text('b.txt')]).toEqual(['a', 'b']);
  });

  it('sync keeps a directory that holds a file of this machine', async () => {
    put('sub/mine.txt', 'mine');
    const report = await sync([], ['sub/c.txt', 'sub/']);
    expect(report.conflicts).toEqual([{ path: 'sub', reason: 'it holds files that are only here' }]);
    expect(text('sub/mine.txt')).toBe('mine');
  });
});

describe('host-executed files', () => {
  const samples = HOST_EXECUTED.map((pattern) =>
    pattern.replace(/\/$/, '/x').replace(/^\*/, 'any').replace('*', '1'),
  );
  it.each(samples)('%s', async (path) => {
    for (const name of [path, `packages/${path}`, path.toUpperCase()]) {
      if (Buffer.byteLength(name) > 100) continue;
      const report = await sync([{ name, content: 'evil' }]);
      expect([name, report.written]).toEqual([name, []]);
      expect(report.withheld).toEqual([{ path: name, reason: 'programs of this machine may run it' }]);
      expect(existsSync(join(dir, name))).toBe(false);
    }
  });

  it('a host-executed file is found under names that some file systems take for the same', () => {
    for (const path of [
      '.GIT/hooks/x',
      '.g\u200cit/config',
      '.git./hooks',
      '.git /config',
      'a/.EnvRC',
      '.ｇit/x',
      'GIT~1/config',
      '.git::$INDEX_ALLOCATION/config',
      'a\\.git\\config',
      '.envrc:stream',
      'e\u0301/.VSCODE/tasks.json',
    ]) {
      expect([path, isHostExecuted(path)]).toEqual([path, true]);
    }
    for (const path of [
      '.gitattributes',
      'git/hooks',
      '.github/CODEOWNERS',
      'src/profile',
      'Makefile',
      '.editorconfig',
    ]) {
      expect([path, isHostExecuted(path)]).toEqual([path, false]);
    }
  });

  it('a file that decides over uploads stays inside: its rules take no effect', async () => {
    put('.gitignore', '.env\nprivate/\n');
    put('.env', 'TOKEN=x');
    put('private/key', 'x');
    base = await treeOfDirectory(dir, (path) => path !== '.env' && !path.startsWith('private'));
    const changes = [
      { name: '.gitignore', content: '!.env\n!private/\n' },
      { name: 'sub/.SandboxerIgnore', content: '!*\n' },
      { name: '.dockerignore', content: '!.env\n' },
    ];
    const report = await sync(changes);
    expect(report.written).toEqual([]);
    expect(report.withheld).toEqual(
      ['.dockerignore', '.gitignore', 'sub/.SandboxerIgnore'].map((path) => ({
        path,
        reason: 'it decides what is uploaded from here',
      })),
    );
    expect(text('.gitignore')).toBe('.env\nprivate/\n');
    expect((await sync(changes, [], { allow: ['.gitignore'] })).written).toEqual(['.gitignore']);
    // A requested file takes effect; likely secrets stay all the same.
    const packed: string[] = [];
    for await (const { header } of findTree(dir)) packed.push(header.name);
    expect(packed).toContain('private/key');
    expect(packed).not.toContain('.env');
  });

  it('a repository in disguise, or a link to a host-executed file, stays inside', async () => {
    const head = 'it makes a repository, whose settings git would run';
    const report = await sync([
      { name: 'docs/HEAD', content: 'ref: refs/heads/main\n' },
      { name: 'docs/config', content: '[core]\nfsmonitor = evil\n' },
      { name: 'lib/head', content: '0123456789012345678901234567890123456789\n' },
      { name: 'lib/b/HEAD', type: 'symlink', linkTarget: 'refs/heads/main' },
      { name: 'page/head', content: '<title>' },
      { name: 'shortcut', type: 'symlink', linkTarget: '.git/hooks' },
      { name: 'sub/up', type: 'symlink', linkTarget: '../.VSCODE' },
    ]);
    expect(report.written).toEqual(['docs/config', 'page/head']);
    expect(report.withheld).toEqual([
      { path: 'docs/HEAD', reason: head },
      { path: 'lib/b/HEAD', reason: head },
      { path: 'lib/head', reason: head },
      { path: 'shortcut', reason: 'it links to .git/hooks, which programs of this machine may run' },
      { path: 'sub/up', reason: 'it links to ../.VSCODE, which programs of this machine may run' },
    ]);
  });

  it('a host-executed file is written where a pattern allows it, and is not deleted either', async () => {
    put('.envrc', 'mine');
    base = await treeOfDirectory(dir, () => true);
    const kept = await sync([]);
    expect(kept.withheld).toEqual([{ path: '.envrc', reason: 'programs of this machine may run it' }]);
    expect(text('.envrc')).toBe('mine');
    const change = [{ name: '.vscode/tasks.json', content: '{}' }];
    expect((await sync(change, [], { allow: ['.vscode/'] })).written).toEqual(['.vscode/tasks.json']);
  });

  it('files that the ignore files here name stay inside silently, and so do likely secrets', async () => {
    put('.gitignore', 'node_modules/\n');
    const report = await sync([
      { name: 'node_modules/x/index.js', content: 'x' },
      { name: '.env', content: 'TOKEN=x' },
    ]);
    expect(report.written).toEqual([]);
    expect(report.withheld).toEqual([{ path: '.env', reason: 'it may hold secrets' }]);
  });
});

describe('links', () => {
  it('links that lead out are not written', async () => {
    const report = await sync([
      { name: 'out', type: 'symlink', linkTarget: '../../etc/passwd' },
      { name: 'abs', type: 'symlink', linkTarget: '/etc/passwd' },
    ]);
    expect(report.written).toEqual([]);
    expect(report.withheld.map(({ path }) => path)).toEqual(['abs', 'out']);
  });

  it('links that exist here are not followed', async () => {
    mkdirSync(join(root, 'elsewhere'));
    writeFileSync(join(root, 'elsewhere/file'), 'theirs');
    symlinkSync(join(root, 'elsewhere'), join(dir, 'door'));
    symlinkSync(join(root, 'elsewhere/file'), join(dir, 'pointer'));
    for (const options of [{}, { force: true }]) {
      const report = await sync(
        [
          { name: 'door/file', content: 'evil' },
          { name: 'door/new', content: 'evil' },
          { name: 'pointer', content: 'evil' },
        ],
        [],
        options,
      );
      expect(report.written).toEqual([]);
      expect(report.conflicts.map(({ path }) => path)).toEqual(['door/file', 'door/new', 'pointer']);
    }
    expect(readFileSync(join(root, 'elsewhere/file'), 'utf8')).toBe('theirs');
    expect(existsSync(join(root, 'elsewhere/new'))).toBe(false);
    expect(lstatSync(join(dir, 'pointer')).isSymbolicLink()).toBe(true);
  });

  it('links and names that lead up end the sync or are held back', async () => {
    await expect(sync([{ name: '../evil', content: 'x' }])).resolves.toMatchObject({ written: [] });
    expect(existsSync(join(root, 'evil'))).toBe(false);
  });
});
