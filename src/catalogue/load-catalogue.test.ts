import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SandboxerError } from '../contract/errors/errors.ts';
import { Profile } from '../contract/profiles/profile.ts';
import type { PushedProfile } from '../core/ports/store/profile-store.ts';
import { loadCatalogue } from './load-catalogue.ts';

let top: string;
beforeEach(async () => {
  top = await mkdtemp(path.join(tmpdir(), 'sbx-catalogue-'));
});
afterEach(() => rm(top, { recursive: true }));

async function put(name: string, text: string | Buffer): Promise<void> {
  const file = path.join(top, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
}

const folder = (label: string, priority = 0) => ({ path: path.join(top, label), priority, label });
const load = (labels: string[] = ['a'], pushed: PushedProfile[] = []) =>
  loadCatalogue({ folders: labels.map((label, index) => folder(label, index * 100)), pushed });

const pushedOf = (source: Record<string, unknown>): PushedProfile => ({
  workspaceId: 'w',
  profile: Profile.parse(source),
  source,
  createdAt: 0,
});

const minimal = (name: string, version = '1.0.0', rest = '') =>
  `id: profile.${name}\nversion: "${version}"\n${rest}`;

function thrownBy(act: () => unknown): SandboxerError {
  try {
    act();
  } catch (error) {
    if (error instanceof SandboxerError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('loading', () => {
  it('loadCatalogue reads the shipped layout and flat files', async () => {
    await put('a/x/1.0.0.yaml', minimal('x'));
    await put('a/y.yml', minimal('y', '0.1.0'));
    await put('a/README.md', 'not a profile');
    await put('a/.hidden.yaml', 'not: [a profile');
    const catalogue = await load();
    expect(catalogue.issues).toEqual([]);
    expect(catalogue.list().map(({ profile, source }) => [profile.id, source])).toEqual([
      ['profile.x', 'a/x/1.0.0.yaml'],
      ['profile.y', 'a/y.yml'],
    ]);
  });

  it('loadCatalogue reports a bad file with its place and loads the others', async () => {
    await put('a/good/1.0.0.yaml', minimal('good'));
    await put('a/bad/1.0.0.yaml', minimal('bad', '1.0.0', 'isolation:\n  level: contaner\n'));
    const catalogue = await load();
    expect(catalogue.get('good').profile.id).toBe('profile.good');
    expect(catalogue.issues).toEqual([
      {
        file: 'a/bad/1.0.0.yaml',
        line: 4,
        column: 3,
        field: 'isolation.level',
        problem: '"contaner" is not one of the allowed values.',
        remedy: 'Did you mean "container"? Use one of none, policy, container, gvisor, microvm.',
      },
    ]);
  });

  it.each([
    ['an id that is not that of the path', 'a/x/1.0.0.yaml', minimal('y'), 'id'],
    ['a version that is not that of the path', 'a/x/1.0.0.yaml', minimal('x', '1.0.1'), 'version'],
    ['a kind that is not known', 'a/x.yaml', `kind: recipe\n${minimal('x')}`, 'kind'],
    ['a list', 'a/x.yaml', '- a\n', ''],
    ['nothing', 'a/x.yaml', '', ''],
    ['bytes that are no text', 'a/x.yaml', Buffer.from([0xff, 0x00]), ''],
    ['too much', 'a/x.yaml', `# ${'x'.repeat(256 * 1024)}`, ''],
    ['an override without an id', 'a/x.yaml', 'kind: override\nimage: debian\n', 'id'],
    ['an override of nothing', 'a/x.yaml', 'kind: override\nid: profile.nope\n', 'id'],
    [
      'an override with a bad priority',
      'a/x.yaml',
      'kind: override\nid: profile.x\npriority: high\n',
      'priority',
    ],
  ])('loadCatalogue refuses %s', async (_name, file, text, field) => {
    await put(file, text);
    const catalogue = await load();
    expect(catalogue.list()).toEqual([]);
    expect(catalogue.issues.map((issue) => [issue.file, issue.field])).toEqual([[file, field]]);
    expect(catalogue.issues[0]?.remedy).toBeTruthy();
  });

  it('loadCatalogue refuses links that leave the folder, and follows those that stay', async () => {
    await put('outside.yaml', minimal('x'));
    await put('a/real/1.0.0.yaml', minimal('real'));
    await symlink('../outside.yaml', path.join(top, 'a/x.yaml'));
    await symlink('/dev/zero', path.join(top, 'a/zero.yaml'));
    await symlink('real/1.0.0.yaml', path.join(top, 'a/alias.yaml'));
    const catalogue = await load();
    expect(catalogue.list().map(({ profile }) => profile.id)).toEqual(['profile.real']);
    expect(catalogue.issues.map(({ file }) => file)).toEqual(['a/x.yaml', 'a/zero.yaml']);
  });

  it('loadCatalogue reports a missing folder, unless the folder is optional', async () => {
    expect((await load(['none'])).issues).toHaveLength(1);
    const folders = [{ ...folder('none'), optional: true }];
    expect((await loadCatalogue({ folders, pushed: [] })).issues).toEqual([]);
  });

  it('loadCatalogue keeps the first of two different documents with one id and version', async () => {
    await put('a/x/1.0.0.yaml', minimal('x'));
    await put('b/x/1.0.0.yaml', minimal('x', '1.0.0', 'image: debian\n'));
    await put('b/same.yaml', minimal('x'));
    const catalogue = await load(['a', 'b']);
    expect(catalogue.get('x')).toMatchObject({ source: 'a/x/1.0.0.yaml', profile: { image: 'host' } });
    expect(catalogue.issues.map(({ file, field }) => [file, field])).toEqual([['b/x/1.0.0.yaml', 'version']]);
  });

  it('loadCatalogue takes pushed profiles, which never replace a file', async () => {
    await put('a/x/1.0.0.yaml', minimal('x'));
    const catalogue = await load(
      ['a'],
      [
        pushedOf({ id: 'profile.mine', version: '2.0.0', ttl: { default: '1h', max: '1h' } }),
        pushedOf({ id: 'profile.x', version: '1.0.0', image: 'evil' }),
      ],
    );
    expect(catalogue.get('mine')).toMatchObject({ source: 'api', profile: { ttl: { max: 3600 } } });
    expect(catalogue.get('x').profile.image).toBe('host');
    expect(catalogue.issues.map(({ file }) => file)).toEqual(['api']);
  });
});

describe('overrides', () => {
  it('apply by declared priority, else by that of their folder', async () => {
    await put('a/x/1.0.0.yaml', minimal('x', '1.0.0', 'image: base\nttl: { default: 1h, max: 2h }\n'));
    await put('b/site.yaml', 'kind: override\nid: profile.x\nimage: site\nttl: { max: 3h }\n');
    await put(
      'c/project.yaml',
      'kind: override\nid: profile.x\npriority: 50\nimage: project\nlabels: { a: b }\n',
    );
    const catalogue = await load(['a', 'b', 'c']);
    expect(catalogue.issues).toEqual([]);
    expect(catalogue.get('x').profile).toMatchObject({
      image: 'site',
      ttl: { default: 3600, max: 10_800 },
      labels: { a: 'b' },
    });
  });

  it('profile overrides may name one version', async () => {
    await put('a/x/1.0.0.yaml', minimal('x', '1.0.0'));
    await put('a/x/2.0.0.yaml', minimal('x', '2.0.0'));
    await put('b/o.yaml', 'kind: override\nid: profile.x\nversion: "1.0.0"\nimage: old\n');
    const catalogue = await load(['a', 'b']);
    expect([catalogue.get('x').profile.image, catalogue.get('x@1.0.0').profile.image]).toEqual([
      'host',
      'old',
    ]);
  });

  it('overrides that break a profile make it unavailable, and the issue points at the override', async () => {
    await put('a/x/1.0.0.yaml', minimal('x'));
    await put('b/o.yaml', '# tightens\nkind: override\nid: profile.x\nnetwork: { defualt: deny }\n');
    const catalogue = await load(['a', 'b']);
    expect(catalogue.issues[0]).toMatchObject({ file: 'b/o.yaml', line: 4, field: 'network.defualt' });
    const error = thrownBy(() => catalogue.get('x'));
    expect([error.code, error.extras.issues]).toEqual(['SBX_PROFILE_INVALID', catalogue.issues]);
  });
});

describe('get', () => {
  beforeEach(async () => {
    for (const version of ['1.2.0', '1.10.0', '2.0.0-rc.1']) {
      await put(`a/agent-dev/${version}.yaml`, minimal('agent-dev', version));
    }
    await put('a/preview/0.1.0-beta.2.yaml', minimal('preview', '0.1.0-beta.2'));
    await put('a/preview/0.1.0-beta.11.yaml', minimal('preview', '0.1.0-beta.11'));
  });

  it('Catalogue.get finds the latest release, and a pre-release only when there is nothing else', async () => {
    const catalogue = await load();
    expect(catalogue.get('profile.agent-dev').profile.version).toBe('1.10.0');
    expect(catalogue.get('preview').profile.version).toBe('0.1.0-beta.11');
    expect(catalogue.list().map(({ profile }) => profile.version)).toEqual([
      '1.10.0',
      '1.2.0',
      '2.0.0-rc.1',
      '0.1.0-beta.11',
      '0.1.0-beta.2',
    ]);
  });

  it('Catalogue.get finds a version in either spelling', async () => {
    const catalogue = await load();
    expect(catalogue.get('agent-dev@2.0.0-rc.1').profile.version).toBe('2.0.0-rc.1');
    expect(catalogue.get('agent-dev', '1.2.0').profile.version).toBe('1.2.0');
    expect(thrownBy(() => catalogue.get('agent-dev@1.2.0', '1.10.0')).code).toBe('SBX_INVALID_REQUEST');
  });

  it('Catalogue.get suggests similar names for an unknown one', async () => {
    const catalogue = await load();
    const error = thrownBy(() => catalogue.get('profile.agnet-dev'));
    expect([error.code, error.remedy]).toEqual(['SBX_PROFILE_NOT_FOUND', 'Did you mean profile.agent-dev?']);
    expect(thrownBy(() => catalogue.get('agent-dev', '9.0.0')).remedy).toContain('1.10.0, 1.2.0, 2.0.0-rc.1');
    expect(thrownBy(() => catalogue.get('constructor')).code).toBe('SBX_PROFILE_NOT_FOUND');
  });

  it('Catalogue.get returns a version that follows its content', async () => {
    const { version } = await load();
    expect((await load()).version).toBe(version);
    await put('a/agent-dev/1.2.0.yaml', minimal('agent-dev', '1.2.0', 'image: other\n'));
    expect((await load()).version).not.toBe(version);
  });
});
