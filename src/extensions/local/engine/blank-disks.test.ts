import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findProgram } from '../host/find-program.ts';
import { BlankDisks } from './blank-disks.ts';

const maker = findProgram('mkfs.ext4');
let base: string;
const disks = () => join(base, 'disks');
const descriptors = () => readdirSync('/proc/self/fd').length;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'sandboxer-blanks-'));
  mkdirSync(disks());
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe.skipIf(maker === null)('BlankDisks', () => {
  const blanks = () => new BlankDisks(disks(), maker ?? '');
  const isThere = async ({ disk }: { disk?: string }) => existsSync(join(base, disk ?? 'none'));

  it('BlankDisks with: keeps blanks of few sizes, however many were requested', async () => {
    const some = blanks();
    for (let size = 16; size < 36; size++) expect(await some.with(size, isThere)).toBe(true);
    expect(readdirSync(disks())).toHaveLength(8);
    expect(await some.with(16, isThere)).toBe(true);
    expect(readdirSync(disks())).toHaveLength(8);
  });

  it('BlankDisks with: a blank stays while it is copied', async () => {
    const some = blanks();
    const { promise, resolve } = Promise.withResolvers<void>();
    const copied = some.with(16, async (field) => {
      await promise;
      return await isThere(field);
    });
    for (let size = 17; size < 30; size++) await some.with(size, isThere);
    resolve();
    expect(await copied).toBe(true);
  });

  it('BlankDisks with: files of an earlier process are removed', async () => {
    for (const name of ['8388600.ext4', '8388599.ext4.77']) writeFileSync(join(disks(), name), '');
    await blanks().with(16, isThere);
    expect(readdirSync(disks())).toEqual(['16.ext4']);
  });

  it('BlankDisks with: a size that cannot be made leaves neither a file nor a descriptor', async () => {
    const some = blanks();
    await some.with(16, isThere);
    const before = descriptors();
    for (let round = 0; round < 10; round++) await expect(some.with(2 ** 40, isThere)).rejects.toThrow();
    expect(descriptors()).toBe(before);
    expect(readdirSync(disks())).toEqual(['16.ext4']);
  });

  it.each([2 ** 24, 2 ** 24 + 1, 2 ** 40, Number.MAX_SAFE_INTEGER])(
    'refuseTooLarge: %i MiB is refused with its field, before anything is made',
    (size) => {
      expect(() => blanks().refuseTooLarge(size, 'size_mb')).toThrow(
        expect.objectContaining({
          code: 'SBX_UNSUPPORTED',
          extras: expect.objectContaining({ field: 'size_mb' }),
        }),
      );
      expect(readdirSync(disks())).toEqual([]);
      expect(() => blanks().refuseTooLarge(16, 'size_mb')).not.toThrow();
    },
  );
});
