import { createRequire } from 'node:module';
import { expect, it } from 'vitest';
import { packageVersion } from './package-version.ts';

it('packageVersion: is the version of the package that the file belongs to', () => {
  const { version } = createRequire(import.meta.url)('sand-boxer/package.json') as { version: string };
  expect(packageVersion()).toBe(version);
});
