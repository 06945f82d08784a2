/**
 * Archives of strangers, unpacked by every unpacker of this package. What then stands in the directory is asked of the
 * kernel: nothing in it may lead outside, whatever came before and whatever comes in a later archive.
 */
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { syncMirror } from '../../src/client/mirror/sync-mirror.ts';
import { unpackTar } from '../../src/extensions/shared/unpack-tar.ts';
import type { ArchiveEntry } from '../../src/testing/conformance/tar-archive.ts';
import { archiveOf } from '../../src/testing/conformance/tar-archive.ts';
import { unpackTree } from '../../src/trees/unpack-tree.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sandboxer-unpack-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Around the directory lie others with the names that targets use: a way out leads somewhere. */
function newTop(name: string): string {
  let at = root;
  for (const level of ['o1', 'o2', 'o3', 'o4']) {
    for (const side of ['a', 'b', 'c']) mkdirSync(join(at, side, 'a'), { recursive: true });
    at = join(at, level);
  }
  const top = join(at, name);
  mkdirSync(top, { recursive: true });
  return top;
}

/** Where the kernel leads; `null` when nothing is there. */
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

function linksBelow(top: string): string[] {
  return readdirSync(top, { withFileTypes: true }).flatMap((entry) => {
    const path = join(top, entry.name);
    if (entry.isSymbolicLink()) return [path];
    return entry.isDirectory() ? linksBelow(path) : [];
  });
}

function leadingOut(top: string): string[] {
  return linksBelow(top).filter((link) => {
    const real = byKernel(link);
    return real !== null && real !== top && !real.startsWith(`${top}/`);
  });
}

async function* tarOf(entries: readonly ArchiveEntry[]) {
  yield archiveOf(entries);
}

type Unpacker = (top: string) => (entries: readonly ArchiveEntry[]) => Promise<unknown>;

const UNPACKERS: Readonly<Record<string, Unpacker>> = {
  'the client’s unpackTree': (top) => (entries) => unpackTree(tarOf(entries), top),
  'the extensions’ unpackTar': (top) => (entries) => unpackTar(tarOf(entries), top),
  'the mirror’s sync': (top) => {
    const base = new Map();
    return (entries) => syncMirror(tarOf(entries), top, base, { force: true });
  },
};

const link = (name: string, linkTarget: string): ArchiveEntry => ({ name, type: 'symlink', linkTarget });
const directory = (name: string): ArchiveEntry => ({ name: `${name}/`, type: 'directory' });
const file = (name: string): ArchiveEntry => ({ name, content: name });

const deep = [directory('a'), directory('a/b'), directory('a/b/c')];
/** Each is a list of archives, unpacked one after another in the same directory. */
const ATTACKS: Readonly<Record<string, readonly (readonly ArchiveEntry[])[]>> = {
  'two links, the second up behind the first': [
    [...deep, link('a/b/c/x', '../../..'), link('z', 'a/b/c/x/../..')],
  ],
  'the same, in the other order': [[...deep, link('z', 'a/b/c/x/../..'), link('a/b/c/x', '../../..')]],
  'the same, in two archives': [
    [...deep, link('z', 'a/b/c/x/../..')],
    [...deep, link('a/b/c/x', '../../..'), link('z', 'a/b/c/x/../..')],
  ],
  'a directory that becomes a link': [
    [...deep, directory('a/b/c/x'), link('z', 'a/b/c/x/../../../../..')],
    [...deep, link('z', 'a/b/c/x/../../../../..')],
    [...deep, link('a/b/c/x', '../../..'), link('z', 'a/b/c/x/../../../../..')],
  ],
  'a directory that becomes a file, and then a link': [
    [...deep, directory('a/b/c/x'), link('z', 'a/b/c/x/../..')],
    [...deep, file('a/b/c/x'), link('z', 'a/b/c/x/../..')],
    [...deep, link('a/b/c/x', '../../..'), link('z', 'a/b/c/x/../..')],
  ],
  'a link, a file and a directory of one name': [
    [directory('a'), link('a/f', '..'), file('a/f'), file('a/f/x'), link('z', 'a/f/../..')],
  ],
  'three links, each through the last': [
    [...deep, link('a/b/c/x', '../..'), link('y', 'a/b/c/x'), link('z', 'y/../..')],
  ],
  'through a loop that is then broken': [
    [link('l', 'l'), link('z', 'l/../..')],
    [directory('a'), link('l', 'a'), link('z', 'l/../..')],
  ],
  'an absolute target behind a link': [[directory('a'), link('x', '/'), link('z', 'x/tmp')]],
  'empty and dotted parts': [[...deep, link('a/b/c/x', './../.././..//'), link('z', 'a//b/./c/x/.././..')]],
};

describe.runIf(process.platform === 'linux')('unpackers: no link leads outside', () => {
  for (const [name, unpacker] of Object.entries(UNPACKERS)) {
    it.each(Object.entries(ATTACKS))(`${name}: %s`, async (_, archives) => {
      const top = newTop('attack');
      const unpack = unpacker(top);
      for (const entries of archives) {
        await unpack(entries).catch(() => {});
        expect(leadingOut(top)).toEqual([]);
      }
    });

    it(`${name}: links that stay inside are made`, async () => {
      const top = newTop('honest');
      await unpacker(top)([
        directory('bin'),
        directory('lib'),
        file('lib/x.js'),
        link('bin/x', '../lib/x.js'),
        link('current', 'lib'),
        link('a', 'current/x.js'),
        link('b', 'lib/../lib/x.js'),
        link('later', 'not/here'),
      ]);
      expect(linksBelow(top)).toHaveLength(5);
      expect(['bin/x', 'a', 'b'].map((at) => byKernel(join(top, at)))).toEqual(
        Array(3).fill(join(top, 'lib/x.js')),
      );
    });

    it(`${name}: any archives, one after another`, { timeout: 120_000 }, async () => {
      const names = (least: number) =>
        fc.array(fc.constantFrom('a', 'b'), { minLength: least, maxLength: 3 });
      const ups = fc.array(fc.constantFrom('..', '..', '..', '.', ''), { maxLength: 3 });
      const path = names(1).map((parts) => parts.join('/'));
      const target = fc.tuple(ups, names(0), ups).map((parts) => parts.flat().join('/') || '.');
      const entry = fc.oneof(path.map(directory), path.map(file), {
        weight: 3,
        arbitrary: fc.tuple(path, target).map(([at, to]) => link(at, to)),
      });
      const archives = fc.array(fc.array(entry, { minLength: 2, maxLength: 8 }), {
        minLength: 1,
        maxLength: 3,
      });
      let round = 0;
      let made = 0;
      await fc.assert(
        fc.asyncProperty(archives, async (all) => {
          round += 1;
          const top = newTop(String(round));
          const unpack = unpacker(top);
          for (const entries of all) {
            await unpack(entries).catch(() => {});
            expect(leadingOut(top)).toEqual([]);
          }
          made += linksBelow(top).length;
        }),
        { numRuns: 200 },
      );
      expect(made).toBeGreaterThan(10);
    });
  }
});

it.each(['the client’s unpackTree', 'the mirror’s sync'])(
  '%s: a link that the directory had is no way out for links of an archive',
  async (name) => {
    const top = newTop('own');
    symlinkSync('/', join(top, 'own'));
    await UNPACKERS[name]?.(top)([link('y', 'own/..'), link('z', 'own/tmp')]);
    expect(leadingOut(top)).toEqual([join(top, 'own')]);
  },
);
