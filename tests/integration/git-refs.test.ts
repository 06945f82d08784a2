/** Repositories as inputs: real git over https and ssh on loopback, fetched by the server under its policy. */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { sshServerMissing, startSshServer } from '../../src/testing/ssh-server.ts';
import { GitHttpsServer } from '../support/git-https-server.ts';
import { TestServer } from '../support/test-server.ts';
import { MEMORY_PROFILE } from './http/fixture.ts';

const PROFILE = {
  ...MEMORY_PROFILE,
  id: 'profile.stub-git',
  setup: { secret_refs: [{ name: 'GIT_TOKEN', provider: 'file', delivery: 'broker' }] },
};
const MARK = join(tmpdir(), `sandboxer-git-mark-${process.pid}`);
const TOKEN = 'token-that-is-secret';

const git = new GitHttpsServer();
let server: TestServer;
let key: string;
let allowPrivate = true;
let firstCommit: string;

beforeAll(async () => {
  await git.start();
  firstCommit = git.commit('app', { 'README.md': 'first', 'src/a.txt': 'a' });
  git.commit('app', {
    'README.md': 'second',
    '.gitattributes': 'src/a.txt export-ignore\nREADME.md export-subst',
  });
  git.git('app', 'tag', 'v1', firstCommit);
  git.git('app', 'push', '-q', 'origin', 'v1');
  server = await start();
  key = await server.workspace('team');
  for (const profile of [MEMORY_PROFILE, PROFILE]) {
    await server.expect(201, 'POST', '/v1/profiles', { key, json: profile });
  }
  await server.call('POST', '/v1/profiles', { json: PROFILE });
});
afterAll(async () => {
  await server.close();
  await git.stop();
});
beforeEach(() => {
  git.credential = null;
  git.redirect = null;
  git.requests.length = 0;
});

async function start(): Promise<TestServer> {
  const secrets = join(git.directory, 'secrets');
  return TestServer.start((config) => ({
    secrets: { directory: secrets },
    git: {
      ...config.git,
      allow: [`localhost:${git.port}`],
      allow_private: allowPrivate,
      ca_file: git.caFile,
      timeout: 60_000,
    },
  }));
}

async function create(inputs: unknown, options: { key?: string; profile?: string } = {}) {
  const json = { profile: options.profile ?? MEMORY_PROFILE.id, inputs };
  return server.call('POST', '/v1/sandboxes', { json, ...(options.key && { key: options.key }) });
}

async function read(id: string, path: string, by: { key?: string } = {}): Promise<string | null> {
  const answer = await server.call('GET', `/v1/sandboxes/${id}/files?path=workspace/${path}`, by);
  return answer.status === 200 ? answer.text : null;
}

function scratch(): string[] {
  return readdirSync(join(server.dir, 'uploads')).filter((name) => name.startsWith('tmp-'));
}

describe('over https', () => {
  test('a branch becomes a workspace, with its commit on record', async () => {
    const { json, status } = await create({ repo_ref: `${git.url('app')}#main` }, { key });
    expect(status).toBe(201);
    const commit = git.git('app', 'rev-parse', 'HEAD');
    expect(json.inputs).toMatchObject([
      { name: 'repo', source: 'git', git: { url: git.url('app'), ref: 'main', commit } },
    ]);
    expect(await read(json.sandbox_id, 'README.md', { key })).toBe('second');
    // What the repository says of its archives is not followed.
    expect(await read(json.sandbox_id, 'src/a.txt', { key })).toBe('a');
    expect(scratch()).toEqual([]);

    // The seed stays what it was when the branch moves on.
    git.commit('app', { 'README.md': 'third' });
    const again = await server.call('POST', `/v1/sandboxes/${json.sandbox_id}/recreate`, { key });
    expect(again.json.inputs[0].git.commit).toBe(commit);
    expect(await read(json.sandbox_id, 'README.md', { key })).toBe('second');
  });

  test.each([
    ['a tag', 'v1'],
    ['a commit', () => firstCommit],
  ])('%s', async (_, ref) => {
    const wanted = typeof ref === 'string' ? ref : ref();
    const { json } = await create({ repo: { git: git.url('app'), ref: wanted } });
    expect(json.inputs[0].git.commit).toBe(firstCommit);
    expect(await read(json.sandbox_id, 'README.md')).toBe('first');
  });

  test('a repository without a ref starts at HEAD, and a failed one gives the reason', async () => {
    expect((await create({ repo: git.url('app') })).status).toBe(201);
    const missing = await create({ repo: `${git.url('app')}#nowhere` });
    expect(missing.json).toMatchObject({
      status: 404,
      code: 'SBX_NOT_FOUND',
      fault: 'caller',
      retryable: false,
      field: 'inputs.repo',
      remedy: expect.stringMatching(/branch, tag or commit/),
    });
    expect(missing.json.detail).toContain('nowhere');
    expect(missing.json.detail).not.toContain(server.dir);
    const absent = await create({ repo_ref: `${git.url('app')}#${'0'.repeat(40)}` });
    expect(absent.json).toMatchObject({ status: 404, retryable: false, field: 'inputs.repo_ref' });
    const none = await create({ repo_ref: git.url('none') });
    expect(none.json).toMatchObject({
      status: 404,
      code: 'SBX_NOT_FOUND',
      retryable: false,
      field: 'inputs.repo_ref',
      remedy: expect.stringMatching(/address.*credential/),
    });
    expect(scratch()).toEqual([]);
  });

  test('a credential by reference, which is nowhere else', async () => {
    git.credential = `git:${TOKEN}`;
    for (const folder of ['secrets', 'secrets/team'])
      mkdirSync(join(git.directory, folder), { recursive: true });
    writeFileSync(join(git.directory, 'secrets/team/GIT_TOKEN'), TOKEN, { mode: 0o600 });
    const without = await create({ repo: git.url('app') }, { key });
    expect(without.json).toMatchObject({
      status: 403,
      code: 'SBX_REF_REFUSED',
      retryable: false,
      remedy: expect.stringMatching(/credential/),
    });
    const inputs = { repo: { git: git.url('app'), credential: 'file:GIT_TOKEN' } };
    // The profile that declares it would deliver it, too; this one's administrator brings it for the fetch alone.
    const made = await create(inputs, { key });
    expect(made.text).not.toContain(TOKEN);
    expect(made.status).toBe(201);
    expect(JSON.stringify(await server.events())).not.toContain(TOKEN);
    const agent = await server.key('team', 'agt', ['read', 'sandboxes']);
    const undeclared = await create(inputs, { key: agent });
    expect(undeclared.json.code).toBe('SBX_INVALID_REQUEST');
  });

  test('a redirect is not followed', async () => {
    const other = new GitHttpsServer();
    await other.start();
    other.commit('app', { secret: 'x' });
    git.redirect = `https://localhost:${other.port}`;
    const answer = await create({ repo: git.url('app') });
    expect(answer.json.code).toBe('SBX_FETCH_FAILED');
    expect(other.requests).toEqual([]);
    await other.stop();
  });

  test('a link that leads out of the tree is refused with its name', async () => {
    git.commit('links', { a: 'x' });
    symlinkSync('/etc/passwd', join(git.directory, 'work/links/passwd'));
    git.commit('links', { b: 'x' });
    const answer = await create({ repo: git.url('links') });
    expect(answer.json).toMatchObject({ status: 422, code: 'SBX_PATH_REFUSED' });
    expect(answer.json.detail).toContain('passwd');
  });

  test('git over https fetches no submodules', async () => {
    git.commit('outer', { a: 'x' });
    git.git(
      'outer',
      '-c',
      'protocol.file.allow=always',
      'submodule',
      '--quiet',
      'add',
      git.path('app'),
      'sub',
    );
    git.commit('outer', { b: 'x' });
    const { json } = await create({ repo: git.url('outer') });
    expect(await read(json.sandbox_id, 'b')).toBe('x');
    expect(await read(json.sandbox_id, 'sub/README.md')).toBeNull();
  });
});

describe('the policy', () => {
  test('a host that is not allowed is not asked, and a workspace may allow less', async () => {
    const elsewhere = await create({ repo: 'https://git.example.org/app.git' }, { key });
    expect(elsewhere.json).toMatchObject({ status: 403, code: 'SBX_REF_REFUSED', field: 'inputs.repo' });
    const otherPort = await create({ repo: 'https://localhost/app.git' }, { key });
    expect(otherPort.json.code).toBe('SBX_REF_REFUSED');
    const unusual = await create({ repo: 'https://localhost:1/app.git' }, { key });
    expect(unusual.json).toMatchObject({
      detail: 'Repositories are not fetched from localhost:1.',
      remedy: expect.stringMatching(/"localhost:1" added to git\.allow /),
    });
    const json = { git_hosts: ['git.example.org'] };
    await server.expect(200, 'PUT', '/v1/workspaces/team/policy', { json });
    const ceiling = await create({ repo: git.url('app') }, { key });
    expect(ceiling.json.code).toBe('SBX_REF_REFUSED');
    expect(ceiling.json.remedy).toMatch(/"localhost:\d+" added to git_hosts of the policy/);
    await server.expect(200, 'DELETE', '/v1/workspaces/team/policy');
    expect((await create({ repo: git.url('app') }, { key })).status).toBe(201);
    expect(git.requests.length).toBeGreaterThan(0);
  });

  test('private addresses are refused, by whatever name', async () => {
    await server.stop();
    allowPrivate = false;
    const strict = await start();
    try {
      for (const host of ['localhost', '127.0.0.1', '[::1]', '0x7f000001', '169.254.169.254', '10.0.0.1']) {
        const json = { profile: MEMORY_PROFILE.id, inputs: { repo: `https://${host}:${git.port}/app.git` } };
        const answer = await strict.call('POST', '/v1/sandboxes', { json });
        expect([host, answer.json.code]).toEqual([host, 'SBX_REF_REFUSED']);
      }
      expect(git.requests).toEqual([]);
    } finally {
      await strict.close();
      allowPrivate = true;
      await server.start();
    }
  });

  test.each([
    'file:///etc/passwd#x',
    `ext::sh -c touch%20${MARK}`,
    'http://localhost/app.git',
    'git://localhost/app.git',
    'https://user:password@localhost/app.git',
    'https://localhost/app.git?x=1',
    'ssh://-oProxyCommand=id/x',
    'ssh://git@-oProxyCommand=id/x',
    `--upload-pack=touch ${MARK}`,
    'https://localhost/app.git#--upload-pack=id',
    'https://localhost/app.git#-x',
    'https://localhost/app.git#a..b',
    'https://localhost/app.git#a:b',
    'https://localhost/app.git#refs/heads/../x',
    'https://localhost/a b.git',
  ])('%s is refused before any request is sent', async (text) => {
    for (const inputs of [{ repo: text }, { repo: { git: text } }]) {
      const answer = await create(inputs, { key });
      expect(answer.status).toBe(403);
      expect(answer.json.code).toBe('SBX_REF_REFUSED');
    }
    expect(git.requests).toEqual([]);
    expect(existsSync(MARK)).toBe(false);
  });
});

describe.skipIf(sshServerMissing() !== null)('over ssh', () => {
  test('git over ssh works with a private key by reference and a known host key', async () => {
    const ssh = await startSshServer();
    const known = join(git.directory, 'known_hosts');
    writeFileSync(known, `[localhost]:${ssh.port} ${ssh.hostKey}\n`);
    const url = `ssh://${ssh.user}@localhost:${ssh.port}${git.path('app')}`;
    const open = await TestServer.start((config) => ({
      secrets: { directory: join(git.directory, 'ssh-secrets') },
      git: { ...config.git, allow_private: true, known_hosts: known },
    }));
    mkdirSync(join(git.directory, 'ssh-secrets'));
    writeFileSync(join(git.directory, 'ssh-secrets', 'KEY'), readFileSync(ssh.identityFile), { mode: 0o600 });
    const call = (inputs: unknown) =>
      open.call('POST', '/v1/sandboxes', { json: { profile: MEMORY_PROFILE.id, inputs } });
    try {
      const without = await call({ repo: url });
      expect(without.json).toMatchObject({ status: 403, code: 'SBX_REF_REFUSED', field: 'inputs.repo' });
      const made = await call({ repo: { git: `${url}#v1`, credential: 'file:KEY' } });
      expect(made.json.inputs?.[0].git.commit).toBe(firstCommit);
      expect(made.text).not.toContain('PRIVATE KEY');
      writeFileSync(known, '');
      const unknown = await call({ repo: { git: `${url}#main`, credential: 'file:KEY' } });
      expect(unknown.json.code).toBe('SBX_FETCH_FAILED');
      expect(unknown.json.detail).toMatch(/host key/i);
    } finally {
      await open.close();
      await ssh.stop();
    }
  });

  test('git over ssh without known hosts is refused', async () => {
    const answer = await create({ repo: 'git@localhost:app.git' });
    expect(answer.json.code).toBe('SBX_REF_REFUSED');
    expect(answer.json.remedy).toContain('known_hosts');
  });
});
