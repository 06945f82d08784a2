import { describe, expect, it } from 'vitest';
import type { ImagePolicy } from '../containers/options.ts';
import { parseImageReference, requireAllowed, showImageReference } from './image-reference.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const policy = (allow: string[], requireDigest = false): ImagePolicy => ({
  allow,
  pull: 'missing',
  requireDigest,
  logins: {},
});
const allowed = (text: string, allow: string[]) => {
  try {
    requireAllowed(parseImageReference(text), policy(allow));
    return true;
  } catch {
    return false;
  }
};

describe('image references', () => {
  it('image references are taken apart and put together again', () => {
    expect(showImageReference(parseImageReference('python'))).toBe('python:latest');
    expect(showImageReference(parseImageReference('team/tool:1'))).toBe('team/tool:1');
    expect(showImageReference(parseImageReference(`localhost:5000/a/b:1@${digest}`))).toBe(
      `localhost:5000/a/b@${digest}`,
    );
    expect(parseImageReference('registry.example.org/a:1').registry).toBe('registry.example.org');
    expect(parseImageReference('library/a').registry).toBeNull();
  });

  it.each([
    '',
    '-x',
    'a b',
    'A',
    'a@sha256:1',
    `a@${digest}@${digest}`,
    'a:../b',
    'a/../b',
    '/a',
    'a?x=1',
    'a'.repeat(600),
  ])('image references refuses %j', (text) =>
    expect(() => parseImageReference(text)).toThrow('is not an image reference'),
  );

  it('image references are allowed by patterns; a host must be named', () => {
    expect(allowed('python:3', ['*'])).toBe(true);
    expect(allowed('team/tool', ['*'])).toBe(true);
    expect(allowed('registry.example.org/a', ['*'])).toBe(false);
    expect(allowed('169.254.169.254/a', ['*'])).toBe(false);
    expect(allowed('localhost:5000/a', ['*'])).toBe(false);
    expect(allowed('registry.example.org/team/a:1', ['registry.example.org/team/*'])).toBe(true);
    expect(allowed('registry.example.org/other/a', ['registry.example.org/team/*'])).toBe(false);
    expect(allowed('registryXexample.org/team/a', ['registry.example.org/team/*'])).toBe(false);
    expect(allowed('python:3', ['python'])).toBe(true);
    expect(allowed('python2:3', ['python'])).toBe(false);
  });

  it('image references must name a digest where the policy says so', () => {
    expect(() => requireAllowed(parseImageReference('a:1'), policy(['*'], true))).toThrow('not pinned');
    requireAllowed(parseImageReference(`a@${digest}`), policy(['*'], true));
  });
});
