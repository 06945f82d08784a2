import { describe, expect, test } from 'vitest';
import { parseQuery } from './parse-query.ts';

describe('parseQuery', () => {
  test('parseQuery decodes names and values, and keeps repeated ones in order', () => {
    expect({ ...parseQuery('/x?a=1&b=%C3%BC+x&a=2&a=3&c&d=&=e&') }).toEqual({
      a: ['1', '2', '3'],
      b: 'ü x',
      c: '',
      d: '',
      '': 'e',
    });
    expect({ ...parseQuery('/x') }).toEqual({});
    expect({ ...parseQuery('/x?label=k%3Dv=w') }).toEqual({ label: 'k=v=w' });
  });

  test('parseQuery returns an object without a prototype', () => {
    const query = parseQuery('/x?__proto__=1&constructor=2');
    expect(Object.getPrototypeOf(query)).toBeNull();
    expect(Object.keys(query)).toEqual(['__proto__', 'constructor']);
  });

  test.each(['%zz', '%ff', '%ed%a0%80', '%00', 'a%', `${'a=1&'.repeat(300)}`])(
    'parseQuery refuses %s',
    (text) => {
      expect(() => parseQuery(`/x?${text}`)).toThrow('SBX_INVALID_REQUEST');
    },
  );
});
