import {
  chmodSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { skeletonDigest, writeSkeleton } from './skeleton.ts';

let top: string;
let etc: string;
beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'sandboxer-skeleton-'));
  etc = join(top, 'etc');
  for (const name of ['ssl/certs', 'alternatives', 'python3.11', 'secret'])
    mkdirSync(join(etc, name), { recursive: true });
  for (const name of ['ssl/certs/one.pem', 'python3.11/site.py', 'os-release', 'secret/key'])
    writeFileSync(join(etc, name), 'before');
  symlinkSync('/usr/bin/vim', join(etc, 'alternatives', 'editor'));
});
afterEach(() => rmSync(top, { recursive: true }));

/** Changes a file, and keeps its time and size and the time of its directory. */
function quietly(name: string, work: (path: string) => void): void {
  const path = join(etc, name);
  const before = [path, join(path, '..')].map((at) => ({ at, stats: lstatSync(at) }));
  work(path);
  for (const { at, stats } of before) lutimesSync(at, stats.atime, stats.mtime);
}

describe('skeletonDigest', () => {
  it.each(['ssl/certs/one.pem', 'python3.11/site.py', 'os-release'])(
    'the content of %s counts, also where its size and time stay',
    (name) => {
      const before = skeletonDigest(null, etc);
      quietly(name, (path) => writeFileSync(path, 'behind'));
      expect(skeletonDigest(null, etc)).not.toBe(before);
    },
  );

  it('the mode of a file and the target of a link count', () => {
    const before = skeletonDigest(null, etc);
    chmodSync(join(etc, 'os-release'), 0o755);
    const executable = skeletonDigest(null, etc);
    quietly('alternatives/editor', (path) => {
      rmSync(path);
      symlinkSync('/usr/bin/ed1', path);
    });
    expect(new Set([before, executable, skeletonDigest(null, etc)]).size).toBe(3);
  });

  it('the content of the sudo helper counts', () => {
    const helper = join(top, 'sudo');
    writeFileSync(helper, 'before');
    const before = skeletonDigest(helper, etc);
    const { atime, mtime } = statSync(helper);
    writeFileSync(helper, 'behind');
    lutimesSync(helper, atime, mtime);
    expect(skeletonDigest(helper, etc)).not.toBe(before);
  });

  it('skeletonDigest ignores files that are not copied', () => {
    const before = skeletonDigest(null, etc);
    writeFileSync(join(etc, 'secret/key'), 'behind');
    chmodSync(join(etc, 'ssl/certs/one.pem'), 0o600);
    const closed = skeletonDigest(null, etc);
    writeFileSync(join(etc, 'ssl/certs/one.pem'), 'behind');
    expect(closed).not.toBe(before);
    expect(skeletonDigest(null, etc)).toBe(closed);
  });
});

it('writeSkeleton: copies world-readable files, and nothing else of the host', () => {
  const root = join(top, 'root');
  symlinkSync(join(top, 'none'), join(etc, 'localtime'));
  chmodSync(join(etc, 'os-release'), 0o640);
  writeSkeleton(root, null, etc);
  const found = readdirSync(join(root, 'etc'));
  expect(found).toEqual(expect.arrayContaining(['alternatives', 'passwd', 'python3.11', 'ssl']));
  for (const name of ['secret', 'localtime', 'os-release']) expect(found).not.toContain(name);
  expect(readFileSync(join(root, 'etc/ssl/certs/one.pem'), 'utf8')).toBe('before');
  expect(readlinkSync(join(root, 'etc/alternatives/editor'))).toBe('/usr/bin/vim');
});
