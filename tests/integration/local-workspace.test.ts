/** The workspace of a sandbox on this machine: read-only means read-only, and mounts are for its administrator alone. */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SandboxerClient, uploadRef } from '../../src/client/index.ts';
import { archiveOf } from '../../src/testing/conformance/tar-archive.ts';
import { removeDir, temporaryDir } from '../support/child-server.ts';
import { LocalServer } from '../support/local-server.ts';

const PROFILE = {
  id: 'profile.work',
  version: '1.0.0',
  extension: 'ext.local',
  overridable: ['workspace'],
  ttl: { default: '10m', max: '1h' },
};

let local: LocalServer;
let reason: string | null = null;
let data: string;
beforeAll(async () => {
  local = await LocalServer.start((config) => ({ listen: { ...config.listen, tcp: '127.0.0.1:0' } }));
  reason = await local.whyNot();
  await local.client.request({ method: 'POST', path: '/v1/profiles', json: PROFILE });
  data = temporaryDir();
  chmodSync(data, 0o755);
  writeFileSync(join(data, 'shared.txt'), 'from the host');
});
afterAll(async () => {
  await local.close();
  removeDir(data);
});

const TREE = archiveOf([
  { name: 'bin/', type: 'directory', mode: 0o700 },
  { name: 'bin/tool', content: '#!/bin/sh\necho tool\n', mode: 0o755 },
  { name: 'note.txt', content: 'note', mode: 0o600 },
  { name: 'link', type: 'symlink', linkTarget: 'note.txt' },
]);

async function create(access: 'ro' | 'rw', inputs: Record<string, unknown> = {}) {
  const upload = await local.client.uploads.create(TREE);
  return local.client.sandboxes.create({
    profile: PROFILE.id,
    workspace: { access, source: uploadRef(upload) },
    inputs: inputs as never,
  });
}

const ATTACKS = [
  'echo x > note.txt',
  'echo x >> link',
  'touch new',
  'rm -f note.txt',
  'mv note.txt other',
  'chmod 777 note.txt',
  'sudo sh -c "echo x > note.txt"',
  'sudo touch new',
  'sudo mount -o remount,rw /home/user/workspace',
  'sudo mount --bind /tmp /home/user/workspace',
  'sudo umount /home/user/workspace',
  'sudo mv /home/user/workspace /home/user/other',
];

describe('access', () => {
  test('rw: the files are the user’s own', async ({ skip }) => {
    skip(reason !== null, reason ?? '');
    const { sandbox_id: id } = await create('rw');
    expect(await local.inside(id, 'pwd; cat link; bin/tool; echo x > note.txt; cat note.txt')).toBe(
      '/home/user/workspace\nnotetool\nx\n',
    );
    await local.client.sandboxes.destroy(id);
  });

  test('ro: no user inside can change the files, root included', async ({ skip }) => {
    skip(reason !== null, reason ?? '');
    const { sandbox_id: id } = await create('ro');
    expect(await local.inside(id, 'pwd; cat link; bin/tool')).toBe('/home/user/workspace\nnotetool\n');
    for (const attack of ATTACKS) {
      const { exit } = await local.shell(id, attack);
      expect([attack, exit.code === 0]).toEqual([attack, false]);
    }
    await expect(local.client.files.write(id, 'workspace/note.txt', 'x')).rejects.toThrow();
    expect(await local.inside(id, 'cat note.txt; ls')).toBe('notebin\nlink\nnote.txt\n');
    expect(await local.inside(id, 'touch ../mine && echo fine')).toBe('fine\n');

    const fork = await local.client.sandboxes.fork(id);
    expect(await local.inside(fork.sandbox_id, 'cat note.txt')).toBe('note');
    expect((await local.shell(fork.sandbox_id, 'touch new')).exit.code).not.toBe(0);
    for (const one of [fork.sandbox_id, id]) await local.client.sandboxes.destroy(one);
  });

  test('ro on a backend that cannot hold to it is refused', async ({ skip }) => {
    skip(reason !== null, reason ?? '');
    const stub = { ...PROFILE, id: 'profile.stub-ro', extension: 'ext.saas-stub' };
    await local.client.request({ method: 'POST', path: '/v1/profiles', json: stub });
    const request = { profile: stub.id, workspace: { access: 'ro' } } as const;
    await expect(local.client.sandboxes.create(request)).rejects.toMatchObject({ code: 'SBX_NO_ROUTE' });
  });
});

describe('mounts', () => {
  const mounts = (access: 'ro' | 'rw', target = '/mnt/data') => ({
    mounts: [{ source: data, target, access }],
  });

  test('mounts show a directory of this machine, read-only unless said otherwise', async ({ skip }) => {
    skip(reason !== null, reason ?? '');
    const { sandbox_id: id } = await create('rw', mounts('ro'));
    // Asked of the kernel: what is only asked of a runtime may be left out by it.
    const flags = await local.inside(id, "grep ' /mnt/data ' /proc/self/mountinfo | cut -d ' ' -f 6");
    expect(flags.trim().split(',')).toEqual(expect.arrayContaining(['ro', 'nosuid', 'nodev']));
    expect(await local.inside(id, 'cat /mnt/data/shared.txt')).toBe('from the host');
    for (const attack of [
      'touch /mnt/data/new',
      'sudo touch /mnt/data/new',
      'sudo mount -o remount,rw /mnt/data',
    ]) {
      expect([attack, (await local.shell(id, attack)).exit.code === 0]).toEqual([attack, false]);
    }
    await local.client.sandboxes.destroy(id);

    mkdirSync(join(data, 'out'));
    chmodSync(join(data, 'out'), 0o777);
    const writing = await create('rw', mounts('rw'));
    await local.inside(writing.sandbox_id, 'echo hello > /mnt/data/out/result');
    expect(readFileSync(join(data, 'out/result'), 'utf8')).toBe('hello\n');
    // Root inside is nobody outside: what belongs to this machine is out of its reach.
    expect(
      (await local.shell(writing.sandbox_id, 'sudo sh -c "echo x > /mnt/data/shared.txt"')).exit.code,
    ).not.toBe(0);
    await local.client.sandboxes.destroy(writing.sandbox_id);
    expect(readFileSync(join(data, 'shared.txt'), 'utf8')).toBe('from the host');
  });

  test('mounts of blocked paths are refused and leave nothing', async ({ skip }) => {
    skip(reason !== null, reason ?? '');
    for (const source of ['/etc', '/', local.dir, '/var/run/docker.sock']) {
      const inputs = { mounts: [{ source, target: '/mnt/x' }] };
      await expect(create('rw', inputs)).rejects.toMatchObject({ code: 'SBX_PATH_REFUSED' });
    }
  });

  test('mounts are denied to every key, and so are sandboxes made from a mounted one', async ({ skip }) => {
    skip(reason !== null, reason ?? '');
    const { secret } = await local.client.keys.create({
      name: 'remote',
      actor: 'adm',
      scopes: ['read', 'sandboxes'],
    });
    const url = `http://${new URL(local.running.tcpAddress as string).host}`;
    const remote = new SandboxerClient({ url, key: secret });
    const request = { profile: PROFILE.id, inputs: mounts('ro') as never };
    await expect(remote.sandboxes.create(request)).rejects.toMatchObject({ code: 'SBX_REF_REFUSED' });
    const { sandbox_id: id } = await create('rw', mounts('ro'));
    await expect(remote.sandboxes.fork(id)).rejects.toMatchObject({ code: 'SBX_REF_REFUSED' });
    const snapshot = await local.client.sandboxes.snapshot(id);
    await expect(remote.snapshots.restore(snapshot.snapshot_id)).rejects.toMatchObject({
      code: 'SBX_REF_REFUSED',
    });
    remote.close();
    await local.client.sandboxes.destroy(id);
  });
});
