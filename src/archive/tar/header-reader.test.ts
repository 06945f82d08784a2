import { expect, it } from 'vitest';
import { BLOCK, TarError } from './format.ts';
import { HeaderReader } from './header-reader.ts';
import { encodeTarHeader } from './write-tar.ts';

const FILE = {
  name: 'f',
  kind: 'file',
  mode: 0o644,
  size: 3,
  modifiedAtMs: 2_000,
  linkTarget: null,
} as const;
const END = Buffer.alloc(BLOCK);

it('take: a header gives its fields, a block of zeros the end', () => {
  const reader = new HeaderReader();
  expect(reader.take(encodeTarHeader(FILE))).toMatchObject({
    is: 'entry',
    type: '0',
    name: 'f',
    size: 3,
    mode: 0o644,
    modifiedAt: 2,
    sparseName: null,
  });
  expect(reader.take(END)).toEqual({ is: 'end' });
});

it('extend: records hold for the next entry alone', () => {
  const name = 'n'.repeat(150);
  const blocks = encodeTarHeader({ ...FILE, name });
  const reader = new HeaderReader();
  const extension = reader.take(blocks.subarray(0, BLOCK));
  expect(extension).toMatchObject({ is: 'extension', type: 'x' });
  const size = extension.is === 'extension' ? extension.size : 0;
  reader.extend('x', blocks.subarray(BLOCK, BLOCK + size));
  expect(reader.take(blocks.subarray(-BLOCK))).toMatchObject({ name });
  expect(reader.take(encodeTarHeader(FILE))).toMatchObject({ name: 'f' });
});

it('take: an end behind an extended header without its entry is refused', () => {
  const reader = new HeaderReader();
  reader.extend('L', Buffer.from('long'));
  expect(() => reader.take(END)).toThrow(new TarError('The archive is cut off.'));
});

it('take: a wrong checksum is refused with the error that the caller makes', () => {
  const block = encodeTarHeader(FILE);
  block[0] = 0x41;
  const reader = new HeaderReader({ refuse: (detail) => new RangeError(detail) });
  expect(() => reader.take(block)).toThrow(RangeError);
});
