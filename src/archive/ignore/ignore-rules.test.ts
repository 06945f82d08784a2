import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IgnoreRules } from './ignore-rules.ts';

const PATHS = [
  'a.log', 'keep.log', 'src/a.log', 'src/deep/a.log', 'build/x', 'src/build/x', 'docs/a.md', 'docs/x/a.md',
  'node_modules/p/index.js', 'sub/node_modules/p/index.js', 'a1', 'ab', 'b', 'foo/bar/baz', 'foo/x/y/baz',
  '#hash', '!bang', 'file.tmp', 'x/file.tmp', 'dist/keep/it', 'sp ace', 'café/ü.txt',
]; // biome-ignore format: a table

const CASES: readonly (readonly [string, string])[] = [
  ['a name anywhere', '*.log\n!keep.log'],
  ['a directory anywhere', 'node_modules/\n'],
  ['anchored at the top', '/build\n'],
  ['a path', 'docs/*.md\n'],
  ['two stars in front', '**/baz\n'],
  ['two stars in the middle', 'foo/**/baz\n'],
  ['two stars at the end', 'dist/**\n'],
  ['classes and single characters', 'a[0-9]\nfile.???\n'],
  ['negated classes', 'a[!0-9]\n'],
  ['escapes, comments and spaces', '\\#hash\n\\!bang\n# comment\nsp\\ ace  \n\n'],
  ['order decides', '*.tmp\n!x/file.tmp\n/x/*.tmp\n!file.tmp\n'],
  ['other scripts', 'café/\n'],
];

/** Walks as a packer does: nothing below an ignored directory is visited. */
function ignored(rules: IgnoreRules, path: string): boolean {
  const parts = path.split('/');
  return parts.some((_, index) =>
    rules.ignores(parts.slice(0, index + 1).join('/'), index < parts.length - 1),
  );
}

describe('IgnoreRules', () => {
  let directory = '';
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'ignore-'));
    execFileSync('git', ['init', '--quiet', directory]);
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it.each(CASES)('IgnoreRules decides as git does: %s', (_name, text) => {
    writeFileSync(join(directory, '.gitignore'), text);
    let output = '';
    try {
      output = execFileSync(
        'git',
        ['-C', directory, '-c', 'core.quotePath=false', 'check-ignore', '--no-index', ...PATHS],
        {
          encoding: 'utf8',
        },
      );
    } catch {
      // git ends with 1 when nothing is ignored.
    }
    const rules = IgnoreRules.none.with('', text);
    expect(PATHS.filter((path) => ignored(rules, path))).toEqual(output.split('\n').filter(Boolean));
  });

  it('IgnoreRules lets a deeper file take back what one above it says', () => {
    const rules = IgnoreRules.none.with('', '*.log').with('src', '!a.log');
    expect(rules.ignores('a.log', false)).toBe(true);
    expect(rules.ignores('src/a.log', false)).toBe(false);
    expect(rules.ignores('srcs/a.log', false)).toBe(true);
  });

  it('IgnoreRules survives patterns that make no sense', () => {
    expect(IgnoreRules.none.with('', '[z-a]\n[\n/\n!\n').ignores('x', false)).toBe(false);
  });
});
