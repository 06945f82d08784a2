import {
  closeSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Look } from './link-judge.ts';
import { goesUpAgain, goesUpFrom, judgeLink, straightened } from './link-judge.ts';

const TREE = new Map<string, 'directory' | 'file' | { linkTo: string }>([
  ['a', 'directory'],
  ['a/b', 'directory'],
  ['f', 'file'],
  ['up', { linkTo: 'a/b' }],
  ['a/top', { linkTo: '..' }],
  ['loop', { linkTo: 'loop' }],
  ['away', { linkTo: '/etc' }],
]);
const look: Look = (path) => TREE.get(path) ?? null;

describe('judgeLink: the destination of one link', () => {
  it.each([
    ['z', 'a/b', 'a/b'],
    ['z', 'a/../f', 'f'],
    ['a/b/z', '../../f', 'f'],
    ['z', '.', ''],
    ['a/b/z', '../..', ''],
    ['z', 'missing/below', 'missing/below'],
    ['z', 'up/x', 'a/b/x'],
    ['z', 'a/top/f', 'f'],
    ['z', 'loop', 'loop'],
  ])('%s → %s is accepted', (name, target, to) => expect(judgeLink(look, name, target)).toEqual({ to }));

  it.each([
    ['z', ''],
    ['z', '/'],
    ['z', '/etc'],
    ['z', 'a\0'],
    ['z', '..'],
    ['a/z', '../../x'],
    ['z', 'a/b/../../..'],
    ['z', 'up/..'],
    ['z', 'up/../../..'],
    ['z', 'a/top/..'],
    ['z', 'missing/..'],
    ['z', 'f/..'],
    ['z', 'loop/..'],
    ['z', 'away'],
    ['z', 'away/passwd'],
  ])('%s → %s is refused', (name, target) => expect(judgeLink(look, name, target)).toHaveProperty('refused'));

  it('a chain of links that doubles at each step is judged at once', () => {
    const doubling: Look = (path) => ({ linkTo: `${path}x/${path}x` });
    const begun = performance.now();
    judgeLink(doubling, 'z', 'a');
    expect(performance.now() - begun).toBeLessThan(1000);
  });
});

it('targets: which go up behind a name, from which directories, and how they read without', () => {
  expect(['../x', 'x/y', '..', 'a/..', '../a/../b', './x/./..'].map(goesUpAgain)).toEqual([
    false,
    false,
    false,
    true,
    true,
    true,
  ]);
  expect(goesUpFrom('s/z', '../a/b/../c')).toEqual(['a', 'a/b']);
  expect(['a/..', '../a/../b', 'a/b/../../c', '../../x'].map(straightened)).toEqual([
    '.',
    '../b',
    'c',
    '../../x',
  ]);
});

/** Returns the path that the kernel resolves a path to; `null` when nothing is there. */
function byKernel(path: string): string | null {
  const O_PATH = 0o10000000;
  try {
    const fd = openSync(path, O_PATH);
    const real = readlinkSync(`/proc/self/fd/${fd}`);
    closeSync(fd);
    return real;
  } catch {
    return null;
  }
}

function lookIn(top: string): Look {
  return (path) => {
    const stats = lstatSync(join(top, path), { throwIfNoEntry: false });
    if (stats === undefined) return null;
    return stats.isDirectory() ? 'directory' : { linkTo: readlinkSync(join(top, path)) };
  };
}

/** Returns whether the directories of a path are real ones. */
function hasRealParents(here: Look, parts: readonly string[]): boolean {
  return parts.slice(1).every((_, index) => here(parts.slice(0, index + 1).join('/')) === 'directory');
}

const target = fc
  .array(fc.constantFrom('a', 'b', 'c', '..', '.'), { minLength: 1, maxLength: 5 })
  .map((parts) => parts.join('/'));
const name = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 });
const entry = fc.record({ name, kind: fc.constantFrom('directory', 'symlink'), target });

describe.runIf(process.platform === 'linux')('judgeLink: against the kernel', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'sandboxer-links-'));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  it('an accepted link that leads somewhere leads, in any tree, where the judge says', () => {
    let round = 0;
    let led = 0;
    fc.assert(
      fc.property(fc.array(entry, { minLength: 4, maxLength: 14 }), (entries) => {
        round += 1;
        const top = join(root, String(round), 'out', 'top');
        mkdirSync(top, { recursive: true });
        const here = lookIn(top);
        for (const { name: parts, kind, target: to } of entries) {
          const path = parts.join('/');
          if (!hasRealParents(here, parts) || here(path) !== null) continue;
          if (kind === 'directory') mkdirSync(join(top, path));
          else symlinkSync(to, join(top, path));
        }
        for (const { name: parts } of entries) {
          const path = parts.join('/');
          const there = hasRealParents(here, parts) ? here(path) : null;
          if (there === null || typeof there === 'string') continue;
          const lead = judgeLink(here, path, there.linkTo);
          const real = byKernel(join(top, path));
          if ('refused' in lead || real === null) continue;
          led += 1;
          expect(relative(top, real)).toBe(lead.to);
        }
      }),
      { numRuns: 400 },
    );
    expect(led).toBeGreaterThan(50);
  });
});
