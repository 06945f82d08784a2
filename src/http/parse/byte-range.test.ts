import { expect, test } from 'vitest';
import { parseRange } from './byte-range.ts';

test('one range of bytes is understood, anything else is the whole', () => {
  expect(parseRange('bytes=0-9')).toEqual({ kind: 'from', first: 0, last: 9 });
  expect(parseRange('bytes=5-')).toEqual({ kind: 'from', first: 5, last: null });
  expect(parseRange('bytes=-5')).toEqual({ kind: 'suffix', length: 5 });
  for (const text of [
    undefined,
    '',
    'bytes=',
    'bytes=-',
    'bytes=9-1',
    'bytes=1-2,4-5',
    'items=1-2',
    'bytes=1e3-',
  ]) {
    expect(parseRange(text)).toBeNull();
  }
});
