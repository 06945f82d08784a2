import { expect, test } from 'vitest';
import { PreviewCookie } from './preview-cookie.ts';

test('a preview cookie over https cannot be planted by another host', () => {
  const cookie = new PreviewCookie(true);
  expect(cookie.keep('t', 60)).toMatch(
    /^__Host-sandboxer_preview=t; Path=\/; HttpOnly; SameSite=Lax; .*; Secure$/,
  );
  expect(cookie.tokens('sandboxer_preview=planted; __Host-sandboxer_preview=t')).toEqual(['t']);
});
