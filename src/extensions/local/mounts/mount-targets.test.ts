import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { VolumeMount } from '../../../contract/assets/volume.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Target } from './mount-targets.ts';
import { checkedTargets, RESERVED_FOR_MOUNTS, RESERVED_PLACES } from './mount-targets.ts';

function refusal(...targets: [Target['kind'], string][]): string | null {
  try {
    checkedTargets(targets.map(([kind, path], index) => ({ kind, field: `${kind}s[${index}]`, path })));
    return null;
  } catch (error) {
    expect(error).toBeInstanceOf(SandboxerError);
    const { code, extras } = error as SandboxerError;
    expect([code, extras.remedy]).toEqual(['SBX_PATH_REFUSED', expect.stringContaining('/mnt/data')]);
    return extras.field ?? '';
  }
}

/** Returns the path, a path in it, and one that covers it. */
function around(path: string): string[] {
  const covering = dirname(path) === '/' ? [] : [dirname(path)];
  return [path, `${path}/`, `${path}/x`, `/mnt/..${path}`, ...covering];
}

describe('a directory of this machine', () => {
  it.each([...RESERVED_PLACES, ...RESERVED_FOR_MOUNTS])(
    'a directory of this machine is not put at %s, in it, or over it',
    (path) => {
      for (const target of around(path))
        expect([target, refusal(['mount', target])]).toEqual([target, 'mounts[0]']);
    },
  );

  it('a directory of this machine has a mount target of its own', () => {
    for (const target of ['/', '/home', '/home/user', 'mnt', '../mnt', '/mnt\0']) {
      expect([target, refusal(['mount', target])]).toEqual([target, 'mounts[0]']);
    }
    expect(refusal(['mount', '/mnt/a'], ['mount', '/mnt/b'], ['volume', '/mnt/c'])).toBeNull();
    for (const [first, second] of [
      ['/mnt/a', '/mnt/a/b'],
      ['/mnt/a/b', '/mnt/a'],
      ['/mnt/a', '/mnt/a'],
    ] as const) {
      expect(refusal(['mount', first], ['mount', second])).toBe('mounts[1]');
      expect(refusal(['mount', first], ['volume', second])).toBe('volumes[1]');
    }
  });
});

describe('a volume', () => {
  it.each(RESERVED_PLACES)(
    'a volume is not put at %s, in it, or over it, by the backend nor by the contract',
    (path) => {
      for (const target of around(path)) {
        expect([target, refusal(['volume', target])]).toEqual([target, 'volumes[0]']);
        expect([target, VolumeMount.safeParse({ name: 'v', path: target }).success]).toEqual([target, false]);
      }
    },
  );

  it('a volume may cover a directory of programs of the sandbox, but not all of them', () => {
    for (const path of [
      '/usr/local/bundle',
      '/etc/app',
      '/var',
      '/home',
      '/home/user/workspace/cache',
      '/runner',
    ]) {
      expect([path, refusal(['volume', path])]).toEqual([path, null]);
      expect([path, VolumeMount.safeParse({ name: 'v', path }).success]).toEqual([path, true]);
    }
    for (const path of ['/usr', '/etc', '/bin', '/lib64', '/var/run', '/var/run/secrets']) {
      expect([path, VolumeMount.safeParse({ name: 'v', path }).success]).toEqual([path, false]);
    }
  });
});
