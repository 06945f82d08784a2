import { expect, it } from 'vitest';
import { nameRefusal } from './entry-name.ts';

it.each(['/etc/passwd', '..', '../up', 'a/../../up', 'a/..', './..'])(
  'nameRefusal: the name %s leaves its place',
  (name) => expect(nameRefusal(name)).toMatch(/leave its place/),
);

it('nameRefusal: a zero byte or more than 4,096 characters cannot be used', () => {
  expect(nameRefusal('a\0b')).toMatch(/cannot be used/);
  expect(nameRefusal('a'.repeat(4_096))).toBeNull();
  expect(nameRefusal('a'.repeat(4_097))).toMatch(/cannot be used/);
});

it.each(['.', 'a', './a/b', 'a//b/', '..a', 'a\nb'])('nameRefusal: %j is accepted', (name) =>
  expect(nameRefusal(name)).toBeNull(),
);
