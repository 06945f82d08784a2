import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerError } from '../../contract/errors.ts';
import { BLOCKED_IN_HOME, BLOCKED_SOURCES, checkedMounts, RESERVED_TARGETS } from './mount-policy.ts';

let dir: string;
let own: string;
beforeAll(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'sandboxer-mounts-')));
  own = join(dir, 'state');
  for (const name of ['state/local', 'data/inner', 'home/.ssh'])
    mkdirSync(join(dir, name), { recursive: true });
  writeFileSync(join(dir, 'file'), 'x');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function mount(source: string, target = '/mnt/x') {
  return checkedMounts([{ source, target, access: 'ro' }], { own: [own] });
}

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(SandboxerError);
    expect((error as SandboxerError).code).toBe('SBX_PATH_REFUSED');
    return (error as SandboxerError).extras.field ?? '';
  }
  return 'not refused';
}

describe('sources', () => {
  it('are directories and files with nothing of the machine in them', () => {
    expect(mount(join(dir, 'data'))).toEqual([{ source: join(dir, 'data'), target: '/mnt/x', access: 'ro' }]);
    expect(mount(`${dir}/data/../file/`)[0]?.source).toBe(join(dir, 'file'));
  });

  const rows = [...BLOCKED_SOURCES, ...BLOCKED_IN_HOME.map((name) => join(homedir(), name))];
  it.each(rows)('are not %s, what is in it, or what it is in', (path) => {
    const field = 'inputs.mounts[0].source';
    for (const source of [path, `${path}/`, `${path}/deep/er`, dirname(path), `/tmp/../${path}`]) {
      expect([source, refusal(() => mount(source))]).toEqual([source, field]);
    }
  });

  it('are not ours, not everything, not relative, not nothing', () => {
    for (const source of [
      own,
      join(own, 'local'),
      dir,
      '/',
      '//',
      '/.',
      'data',
      './data',
      '~',
      join(dir, 'none'),
    ]) {
      expect([source, refusal(() => mount(source))]).toEqual([source, 'inputs.mounts[0].source']);
    }
    expect(refusal(() => mount('/tmp\0/x'))).toBe('inputs.mounts[0].source');
  });

  it('are judged by what they lead to', () => {
    const link = (name: string, target: string) => {
      const path = join(dir, 'links', name);
      mkdirSync(dirname(path), { recursive: true });
      symlinkSync(target, path);
      return path;
    };
    const etc = link('etc', '/etc');
    const twice = link('twice', 'etc');
    const up = link('up', '../../../../../../..');
    const nowhere = link('nowhere', join(dir, 'links/later'));
    const state = link('state', own);
    const sources = [etc, join(etc, 'ssh'), twice, up, join(up, 'etc'), nowhere, state];
    // What does not exist below a link that leads to a blocked place is in that place.
    const missing = [join(etc, 'no/such/thing'), join(twice, 'nothing'), join(nowhere, 'x')];
    for (const source of [...sources, ...missing]) {
      expect([source, refusal(() => mount(source))]).toEqual([source, 'inputs.mounts[0].source']);
    }
    const good = link('good', '../data');
    expect(mount(join(good, 'inner'))[0]?.source).toBe(join(dir, 'data/inner'));
  });
});

describe('targets', () => {
  it.each(RESERVED_TARGETS)('are not %s, what is in it, or what it is in', (path) => {
    const covering = dirname(path) === '/' ? [] : [dirname(path)];
    for (const target of [path, `${path}/`, `${path}/x`, `/mnt/..${path}`, ...covering]) {
      const field = refusal(() => mount(join(dir, 'data'), target));
      expect([target, field]).toEqual([target, 'inputs.mounts[0].target']);
    }
  });

  it('are places of their own', () => {
    for (const target of ['/', '/home', '/home/user', 'mnt', '../mnt', '/mnt\0']) {
      expect([target, refusal(() => mount(join(dir, 'data'), target))]).toEqual([
        target,
        'inputs.mounts[0].target',
      ]);
    }
    const source = join(dir, 'data');
    const two = (first: string, second: string) =>
      checkedMounts(
        [first, second].map((target) => ({ source, target, access: 'ro' as const })),
        { own: [own] },
      );
    expect(two('/mnt/a', '/mnt/b')).toHaveLength(2);
    expect(refusal(() => two('/mnt/a', '/mnt/a/b'))).toBe('inputs.mounts[1].target');
    expect(refusal(() => two('/mnt/a', '/mnt/a'))).toBe('inputs.mounts[1].target');
  });
});
