import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sameHost, takeToken } from './preview-target.ts';

const base = 'http://3000-x.localhost:8401';
const character = fc.integer({ min: 0x21, max: 0xff }).map((code) => String.fromCharCode(code));
const slashes = fc.constantFrom('', '/', '\\', '//', '/\\', '.', '..', '@', ':', '%2f');
const path = fc
  .tuple(slashes, fc.array(fc.oneof(slashes, character), { maxLength: 30 }))
  .map(([first, rest]) => `/${first}${rest.join('')}`);

test('a redirect never leaves the host', () => {
  fc.assert(
    fc.property(path, (text) => new URL(sameHost(text), base).origin === base),
    { numRuns: 2_000 },
  );
});

test('an address is left as it is but for the token', () => {
  fc.assert(
    fc.property(path, (text) => {
      const { path: kept, token } = takeToken(text);
      return token !== null || kept === text;
    }),
  );
  const at = (query: string) => takeToken(`/a${query}`);
  expect(at('?sandboxer_token=t')).toEqual({ path: '/a', token: 't' });
  expect(at('?b=%zz&sandboxer_token=a%2Eb&&c#d')).toEqual({ path: '/a?b=%zz&&c#d', token: 'a.b' });
  expect(at('?sandboxer_token=1&%73andboxer_token=2')).toEqual({ path: '/a', token: '1' });
  expect(at('?my_sandboxer_token=1')).toEqual({ path: '/a?my_sandboxer_token=1', token: null });
  expect(at('#?sandboxer_token=1').path).not.toContain('sandboxer_token');
});
