import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerError } from '../contract/errors/errors.ts';
import { SecretRef } from '../contract/profiles/secret.ts';
import type { SecretProvider } from '../core/ports/secrets.ts';
import { EnvSecretProvider } from './env-provider.ts';
import { FileSecretProvider } from './file-provider.ts';
import { resolveSecrets } from './resolve-secrets.ts';

const { signal } = new AbortController();

async function refusalOf(promise: Promise<unknown>): Promise<SandboxerError> {
  const error = await promise.then(
    () => new Error('it was resolved'),
    (reason: unknown) => reason,
  );
  if (error instanceof SandboxerError) return error;
  throw error;
}

describe('env provider', () => {
  const provider = new EnvSecretProvider({
    SANDBOXER_SECRET_TOKEN: 's3cret',
    TOKEN: 'other',
    HOME: '/root',
  });

  it('env provider reads only variables with the prefix', async () => {
    expect(await provider.resolve('TOKEN')).toBe('s3cret');
    expect((await refusalOf(provider.resolve('HOME'))).code).toBe('SBX_SECRET_UNRESOLVED');
  });

  it('env provider keeps the workspaces apart', async () => {
    const environment = { SANDBOXER_SECRET_TOKEN: 'default', SANDBOXER_SECRET_TEAM_A__TOKEN: 'of a' };
    expect(await new EnvSecretProvider(environment, 'team-a').resolve('TOKEN')).toBe('of a');
    expect((await refusalOf(new EnvSecretProvider(environment, 'team-b').resolve('TOKEN'))).code).toBe(
      'SBX_SECRET_UNRESOLVED',
    );
    expect((await refusalOf(new EnvSecretProvider(environment).resolve('TEAM_A__TOKEN'))).code).toBe(
      'SBX_SECRET_UNRESOLVED',
    );
  });

  it.each(['', 'token', 'A-B', '../TOKEN', 'A=B', '__proto__'])(
    'env provider refuses the key %j',
    async (key) => {
      expect((await refusalOf(provider.resolve(key))).code).toBe('SBX_SECRET_UNRESOLVED');
    },
  );
});

describe('file provider', () => {
  let top: string;
  let provider: SecretProvider;

  beforeAll(async () => {
    top = await mkdtemp(path.join(tmpdir(), 'sbx-secrets-'));
    const inside = path.join(top, 'secrets');
    await mkdir(path.join(inside, '..data'), { recursive: true });
    const write = (name: string, text: string | Buffer) =>
      writeFile(path.join(inside, name), text, { mode: 0o600 });
    await writeFile(path.join(top, 'outside'), 'outside', { mode: 0o600 });
    await write('token', 's3cret\n');
    await write('two-lines', 'a\n\n');
    await write('empty', '\n');
    await write('binary', Buffer.from([0xff, 0xfe]));
    await write('large', 'x'.repeat(64 * 1024 + 1));
    await write('largest', 'x'.repeat(64 * 1024));
    await write('loose', 'x');
    await chmod(path.join(inside, 'loose'), 0o620);
    await write('..data/mounted', 'mounted');
    await symlink('..data/mounted', path.join(inside, 'mounted'));
    await symlink('../outside', path.join(inside, 'escape'));
    await symlink('/dev/zero', path.join(inside, 'endless'));
    provider = new FileSecretProvider(inside);
  });
  afterAll(() => rm(top, { recursive: true }));

  it('file provider reads a file without its last newline', async () => {
    expect(await provider.resolve('token', signal)).toBe('s3cret');
    expect(await provider.resolve('two-lines', signal)).toBe('a\n');
    expect(await provider.resolve('largest', signal)).toHaveLength(64 * 1024);
  });

  it('file provider follows a link within the directory', async () => {
    expect(await provider.resolve('mounted', signal)).toBe('mounted');
  });

  it.each([
    'missing',
    'empty',
    'binary',
    'large',
    'loose',
    'escape',
    'endless',
    '.',
    '..',
    '../outside',
    '..data/mounted',
    '/etc/passwd',
    'token\0',
  ])('file provider refuses %j', async (key) => {
    expect((await refusalOf(provider.resolve(key, signal))).code).toBe('SBX_SECRET_UNRESOLVED');
  });
});

describe('resolveSecrets', () => {
  const providers = {
    env: new EnvSecretProvider({ SANDBOXER_SECRET_A: 'va', SANDBOXER_SECRET_B: 'vb' }),
    leaky: { resolve: () => Promise.reject(new Error('refused: password=hunter2')) },
  };
  const resolve = (
    refs: (typeof SecretRef)['_zod']['input'][],
    credentials = ['broker', 'env', 'file'] as const,
  ) =>
    resolveSecrets(
      refs.map((ref) => SecretRef.parse(ref)),
      providers,
      { credentials: [...credentials] },
      signal,
    );

  it('resolveSecrets gives values in the order of the references', async () => {
    expect(await resolve([{ name: 'X', key: 'B', delivery: 'env' }, { name: 'A' }])).toEqual([
      { name: 'X', delivery: 'env', value: 'vb' },
      { name: 'A', delivery: 'broker', value: 'va' },
    ]);
  });

  it('resolveSecrets names a reference that cannot be resolved', async () => {
    const missing = await refusalOf(resolve([{ name: 'A' }, { name: 'NPM', key: 'NO' }]));
    expect([missing.code, missing.detail]).toEqual([
      'SBX_SECRET_UNRESOLVED',
      'The secret NPM (env:NO): The server has no SANDBOXER_SECRET_NO.',
    ]);
    const unknown = await refusalOf(resolve([{ name: 'A', provider: 'vault' }]));
    expect(unknown.code).toBe('SBX_SECRET_UNRESOLVED');
    expect(unknown.remedy).toContain('env, leaky');
    expect((await refusalOf(resolve([{ name: 'A', provider: 'constructor' }]))).code).toBe(
      'SBX_SECRET_UNRESOLVED',
    );
  });

  it('resolveSecrets keeps what a provider says out of the error', async () => {
    const error = await refusalOf(resolve([{ name: 'A', provider: 'leaky' }]));
    expect(JSON.stringify([error.message, error.extras, error.cause, error.stack])).not.toContain('hunter2');
  });

  it('resolveSecrets refuses a delivery that the backend does not offer, before anything is read', async () => {
    const refs = [SecretRef.parse({ name: 'A', provider: 'leaky', delivery: 'env' })];
    const error = await refusalOf(resolveSecrets(refs, providers, { credentials: ['broker'] }, signal));
    expect(error.code).toBe('SBX_SECRET_DELIVERY');
  });

  it('resolveSecrets stops when it is aborted', async () => {
    const aborted = AbortSignal.abort(new Error('stop'));
    const refs = [SecretRef.parse({ name: 'A', provider: 'leaky' })];
    await expect(resolveSecrets(refs, providers, { credentials: ['broker'] }, aborted)).rejects.toThrow(
      'stop',
    );
  });
});
