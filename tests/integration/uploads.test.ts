/** File trees that are uploaded before their sandbox is made: checked, held, used, expired. */
import { existsSync, readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SandboxerClient, uploadRef } from '../../src/client/index.ts';
import type { UploadEntry } from '../../src/contract/assets/upload.ts';
import { sweepUploads } from '../../src/control/assets/sweep-uploads.ts';
import type { ArchiveEntry } from '../../src/testing/conformance/tar-archive.ts';
import { archiveOf } from '../../src/testing/conformance/tar-archive.ts';
import { TestServer } from '../support/test-server.ts';
import { MEMORY_PROFILE } from './http/fixture.ts';

let server: TestServer;
let client: SandboxerClient;
beforeAll(async () => {
  server = await TestServer.start((config) => ({
    listen: { ...config.listen, tcp: '127.0.0.1:0' },
    uploads: { max_mb: 1, max_entries: 50, workspace_mb: 2, keep: 60_000 },
  }));
  client = new SandboxerClient({ url: `unix:${join(server.dir, 'sandboxer.sock')}` });
});
afterAll(async () => {
  client.close();
  await server.close();
});

const TREE: ArchiveEntry[] = [
  { name: 'src/', type: 'directory', mode: 0o755 },
  { name: 'src/main.txt', content: 'hello' },
  { name: 'run.sh', content: '#!/bin/sh\n', mode: 0o755 },
  { name: 'link', type: 'symlink', linkTarget: 'src/main.txt' },
];

/** The memory backend knows no links. */
const FILES = TREE.filter(({ type }) => type !== 'symlink');

function blobs(): string[] {
  return readdirSync(join(server.dir, 'uploads')).sort();
}

async function create(inputs: Record<string, string>, id?: string) {
  const profile = MEMORY_PROFILE.id;
  return client.sandboxes.create({ profile, inputs, ...(id === undefined ? {} : { id }) });
}

describe('an upload', () => {
  test('an upload has an id made of its content, and a table of contents', async () => {
    const first = await client.uploads.create(archiveOf(TREE));
    const again = await client.uploads.create(archiveOf(TREE));
    expect(again.upload_id).toBe(first.upload_id);
    expect(first).toMatchObject({ workspace_id: 'default', entries: 4 });
    expect(first.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    const entries: UploadEntry[] = [];
    for await (const entry of client.uploads.entries(first.upload_id)) entries.push(entry);
    expect(entries.map(({ path, kind }) => `${kind} ${path}`)).toEqual([
      'directory src',
      'file src/main.txt',
      'file run.sh',
      'symlink link',
    ]);
    expect(entries[1]?.digest).toBe(
      'sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824',
    );
    expect((await client.uploads.list().page()).items.map(({ upload_id }) => upload_id)).toContain(
      first.upload_id,
    );
  });

  test('an upload is in the workspace when the sandbox is ready, and stays as long as it', async () => {
    for (const { upload_id } of (await client.uploads.list().page()).items)
      await client.uploads.delete(upload_id);
    const upload = await client.uploads.create(archiveOf(FILES));
    const sandbox = await create({ repo: uploadRef(upload) });
    expect(sandbox.inputs).toEqual([
      { name: 'repo', upload_id: upload.upload_id, digest: upload.digest, source: 'upload', git: null },
    ]);
    const { sandbox_id: id } = sandbox;
    expect(await client.files.readText(id, 'workspace/src/main.txt')).toBe('hello');
    const where = await client.exec(id, { command: ['cat', 'src/main.txt'] }).result();
    expect(where.stdout).toBe('hello');
    await expect(client.uploads.delete(upload.upload_id)).rejects.toMatchObject({
      code: 'SBX_INVALID_STATE',
    });
    await client.sandboxes.recreate(id);
    expect(await client.files.readText(id, 'workspace/src/main.txt')).toBe('hello');
    await client.sandboxes.destroy(id);
    await client.uploads.delete(upload.upload_id);
    expect(blobs()).toEqual([]);
    await expect(create({ repo: uploadRef(upload) })).rejects.toMatchObject({ code: 'SBX_NOT_FOUND' });
  });

  test('an upload comes before setup, and several lie over one another', async () => {
    const below = await client.uploads.create(
      archiveOf([
        { name: 'a', content: '1' },
        { name: 'b', content: '1' },
      ]),
    );
    const above = await client.uploads.create(archiveOf([{ name: 'b', content: '2' }]));
    const { sandbox_id: id } = await create({ repo_ref: uploadRef(below), files: uploadRef(above) });
    expect(await client.files.readText(id, 'workspace/a')).toBe('1');
    expect(await client.files.readText(id, 'workspace/b')).toBe('2');
    await client.sandboxes.destroy(id);
  });

  test('an upload of another workspace does not exist', async () => {
    const key = await server.workspace('elsewhere');
    const upload = await client.uploads.create(archiveOf(TREE));
    const json = { profile: MEMORY_PROFILE.id, inputs: { repo: uploadRef(upload) } };
    await server.call('POST', '/v1/profiles', { key, json: MEMORY_PROFILE });
    const refused = await server.call('POST', '/v1/sandboxes', { key, json });
    expect([refused.status, refused.json.code]).toEqual([404, 'SBX_NOT_FOUND']);
    const shown = await server.call('GET', `/v1/uploads/${upload.upload_id}`, { key });
    expect(shown.status).toBe(404);
  });

  test('an upload is deleted after its time, and so are the remains of a crash', async () => {
    const upload = await client.uploads.create(archiveOf([{ name: 'late', content: 'x' }]));
    const { control } = server.running;
    const later = { ...control, clock: { ...control.clock, now: () => Date.now() + 120_000 } };
    expect(existsSync(join(server.dir, 'uploads', `${upload.upload_id}.tar`))).toBe(true);
    await sweepUploads(later);
    await expect(client.uploads.get(upload.upload_id)).rejects.toMatchObject({ status: 404 });
    expect(blobs()).toEqual([]);

    const orphan = await client.uploads.create(archiveOf([{ name: 'orphan', content: 'x' }]));
    const path = join(server.dir, 'uploads', `${orphan.upload_id}.tar`);
    await control.store.transaction('test', (tx) => tx.uploads.remove(orphan.upload_id));
    await sweepUploads(control);
    expect(existsSync(path)).toBe(true);
    utimesSync(path, 0, 0);
    await sweepUploads(control);
    expect(blobs()).toEqual([]);
  });
});

describe('refused uploads', () => {
  const HOSTILE: Record<string, ArchiveEntry[]> = {
    'a way up': [{ name: '../escape', content: 'x' }],
    'a way up in the middle': [{ name: 'a/../../escape', content: 'x' }],
    'an absolute name': [{ name: '/etc/passwd', content: 'x' }],
    'a link that leads out': [{ name: 'a', type: 'symlink', linkTarget: '../../etc' }],
    'an absolute link': [{ name: 'a', type: 'symlink', linkTarget: '/etc' }],
    'a hard link': [{ name: 'a', type: 'hardlink', linkTarget: 'b' }],
    'a file below a link': [
      { name: 'd/', type: 'directory' },
      { name: 'a', type: 'symlink', linkTarget: 'd' },
      { name: 'a/x', content: 'x' },
    ],
    'a link in the place of a directory': [
      { name: 'a/x', content: 'x' },
      { name: 'a', type: 'symlink', linkTarget: 'b' },
    ],
    'a name that comes twice': [
      { name: 'a', content: '1' },
      { name: './a', content: '2' },
    ],
    nothing: [],
  };
  for (const [what, entries] of Object.entries(HOSTILE)) {
    test(what, async () => {
      await expect(client.uploads.create(archiveOf(entries))).rejects.toMatchObject({
        status: 422,
        code: 'SBX_PATH_REFUSED',
      });
      expect(blobs().filter((name) => name.startsWith('tmp-'))).toEqual([]);
    });
  }

  test('an upload that is no archive, or ends in the middle, is refused', async () => {
    for (const bytes of [
      Buffer.alloc(2048, 7),
      archiveOf([{ name: 'a', content: 'x'.repeat(2000) }]).subarray(0, 1000),
    ]) {
      await expect(client.uploads.create(bytes)).rejects.toMatchObject({ status: 422 });
    }
  });

  test('too many bytes, too many entries, too much together', async () => {
    const big = (name: string, size: number) => archiveOf([{ name, content: Buffer.alloc(size, name) }]);
    await expect(client.uploads.create(big('a', 1_100_000))).rejects.toMatchObject({ status: 413 });
    const many = archiveOf(Array.from({ length: 51 }, (_, index) => ({ name: `f${index}` })));
    await expect(client.uploads.create(many)).rejects.toMatchObject({ status: 413 });
    await client.uploads.create(big('b', 900_000));
    await client.uploads.create(big('c', 900_000));
    await expect(client.uploads.create(big('d', 900_000))).rejects.toMatchObject({
      status: 429,
      code: 'SBX_QUOTA_EXCEEDED',
      retryable: false,
    });
    // What is there already needs no room.
    await client.uploads.create(big('c', 900_000));
    expect(blobs().filter((name) => name.startsWith('tmp-'))).toEqual([]);
    for (const { upload_id } of (await client.uploads.list().page()).items)
      await client.uploads.delete(upload_id);
  });

  test('files for a sandbox without a workspace are refused', async () => {
    const upload = await client.uploads.create(archiveOf(TREE));
    const request = {
      profile: MEMORY_PROFILE.id,
      inputs: { repo: uploadRef(upload) },
      workspace: { access: 'none' },
    } as const;
    await expect(client.sandboxes.create(request)).rejects.toMatchObject({ code: 'SBX_INVALID_REQUEST' });
  });
});
