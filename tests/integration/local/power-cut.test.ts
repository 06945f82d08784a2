/** What was acknowledged is on the disk: shown by what a power cut at the moment of the answer would leave. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'sandboxer-cut-'));
const disk = join(folder, 'disk');
const point = join(folder, 'point');
const CHILD = join(import.meta.dirname, 'power-cut-child.ts');

/** Writes out by itself so rarely that only what asks for it is on the disk. */
function mounted(command: string) {
  mkdirSync(point, { recursive: true });
  const script = `rm -f ${disk} && truncate -s 2G ${disk} && mkfs.ext4 -q -F -J size=8 ${disk} && mount -o loop,commit=300 ${disk} ${point} && ${command}`;
  return spawnSync('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script], {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${process.env.PATH}:/sbin:/usr/sbin` },
    timeout: 240_000,
  });
}

const usable = process.getuid?.() === 0 && mounted('true').status === 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf(!usable)(`a power cut${usable ? '' : ' (no file system can be mounted here)'}`, () => {
  it('a power cut right after the answer leaves snapshots, images, volumes and lasting forks as reported', (context) => {
    const { stdout, stderr, status } = mounted(
      `exec ${process.execPath} ${CHILD} ${folder} ${disk} ${point}`,
    );
    expect(status, stderr).toBe(0);
    const { reason, first: _, ...found } = JSON.parse(stdout);
    if (reason !== null) context.skip(reason);
    expect(Object.keys(found)).toEqual([
      'copied',
      'sealed',
      'imported',
      'image',
      'volume',
      'fork',
      'restored',
    ]);
    for (const [what, [before, now]] of Object.entries<[unknown, unknown]>(found))
      expect(now, what).toEqual(before);
  }, 300_000);
});
