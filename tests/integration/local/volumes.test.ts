/** Volumes of `ext.local`: what outlives sandboxes, and who sees it how. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { SpawnerClient } from '../../../src/extensions/local/engine/spawner-client.ts';
import { LocalServer } from '../../support/local-server.ts';

const server = await LocalServer.start((config) => ({
  limits: { ...config.limits, volumes: 4 },
  timing: { ...config.timing, reconcile: 500 },
}));
const reason = await server.whyNot();
const { client } = server;
const root = process.getuid?.() === 0;

async function having(...volumes: { name: string; path: string; access?: 'ro' | 'rw' }[]): Promise<string> {
  return (await client.sandboxes.create({ volumes })).sandbox_id;
}

afterAll(() => server.close());

describe.skipIf(reason !== null)(`volumes${reason === null ? '' : ` (${reason})`}`, () => {
  it('volumes outlive the sandbox that wrote them, with owners that mean the same in every other', async () => {
    await client.volumes.create({ name: 'data', labels: { of: 'test' } });
    const first = await having({ name: 'data', path: '/mnt/data' });
    await server.inside(first, 'echo mine > /mnt/data/user; sudo sh -c "echo roots > /mnt/data/root"');
    expect((await client.volumes.get('data')).mounted_by).toEqual([first]);
    const firstIds = (await client.sandboxes.isolation(first)).uid_map;
    const second = await having({ name: 'data', path: '/srv/deep/er' });
    expect(await server.inside(second, 'cd /srv/deep/er; stat -c "%n %u" *; cat user root')).toBe(
      'root 0\nuser 1000\nmine\nroots\n',
    );
    if (root) expect((await client.sandboxes.isolation(second)).uid_map).not.toEqual(firstIds);
    await server.inside(second, 'echo back > /srv/deep/er/user');
    expect(await server.inside(first, 'cat /mnt/data/user')).toBe('back\n');
    await client.sandboxes.destroy(first);
    await client.sandboxes.destroy(second);
    const third = await having({ name: 'data', path: '/v' });
    expect(await server.inside(third, 'cat /v/user')).toBe('back\n');
    await client.sandboxes.destroy(third);
  });

  it('volumes requested read-only are only read, by root inside too', async () => {
    const id = await having({ name: 'data', path: '/v', access: 'ro' });
    expect(await server.inside(id, 'cat /v/root')).toBe('roots\n');
    for (const user of ['user', 'root']) {
      expect(
        (await server.shell(id, 'touch /v/no; mount -o remount,rw /v; touch /v/no', user)).exit.code,
      ).not.toBe(0);
    }
    await client.sandboxes.destroy(id);
  });

  it('volumes give no file power: set-uid and devices mean nothing in them', async () => {
    const id = await having({ name: 'data', path: '/v' });
    expect(await server.inside(id, 'grep " /v " /proc/self/mountinfo')).toMatch(/nosuid,nodev/);
    await client.sandboxes.destroy(id);
  });

  it('volumes are not in a snapshot, and go along to a fork', async () => {
    const id = await having({ name: 'data', path: '/v' });
    const fork = await client.sandboxes.fork(id);
    await server.inside(fork.sandbox_id, 'echo from-fork > /v/fork');
    expect(await server.inside(id, 'cat /v/fork')).toBe('from-fork\n');
    expect((await client.volumes.get('data')).mounted_by.sort()).toEqual([id, fork.sandbox_id].sort());
    await client.sandboxes.destroy(fork.sandbox_id);
    await client.sandboxes.destroy(id);
  });

  it('volumes stay while a sandbox has them, and go with everything in them', async () => {
    const { volume_id } = await client.volumes.create({ name: 'short' });
    const id = await having({ name: 'short', path: '/v' });
    await expect(client.volumes.delete('short')).rejects.toMatchObject({
      code: 'SBX_CONFLICT',
      detail: expect.stringContaining(id),
    });
    expect(await server.inside(id, 'echo x > /v/x; cat /v/x')).toBe('x\n');
    await client.sandboxes.destroy(id);
    await client.volumes.delete('short');
    expect(existsSync(`${server.dir}/local/volumes/${volume_id}`)).toBe(false);
    await expect(client.volumes.get('short')).rejects.toMatchObject({ code: 'SBX_NOT_FOUND' });
  });

  it('volumes are not held by a failed sandbox of which nothing is left', async () => {
    const { volume_id } = await client.volumes.create({ name: 'held' });
    const id = await having({ name: 'held', path: '/v' });
    const spawner = await SpawnerClient.open(join(server.dir, 'local', 'spawner.sock'), () => {});
    const mounts = async () => (await client.volumes.get('held')).mounted_by;
    expect(await mounts()).toEqual([id]);
    // Its backend loses it: nothing answers for it any more.
    for (const [name, state] of Object.entries(await spawner.call('list')))
      if (state === 'live') await spawner.call('destroy', { id: name });
    spawner.close();
    await vi.waitUntil(async () => (await client.sandboxes.get(id)).state === 'failed', { timeout: 30_000 });
    await vi.waitUntil(async () => (await mounts()).length === 0, { timeout: 30_000 });
    await client.volumes.delete('held');
    expect(existsSync(`${server.dir}/local/volumes/${volume_id}`)).toBe(false);
    expect((await client.sandboxes.get(id)).state).toBe('failed');
    await client.sandboxes.destroy(id);
  });

  it('volumes have a name once, a number at most, and places of their own', async () => {
    await expect(client.volumes.create({ name: 'data' })).rejects.toMatchObject({ code: 'SBX_CONFLICT' });
    for (const name of ['b', 'c', 'd']) await client.volumes.create({ name });
    await expect(client.volumes.create({ name: 'e' })).rejects.toMatchObject({ code: 'SBX_QUOTA_EXCEEDED' });
    for (const name of ['b', 'c', 'd']) await client.volumes.delete(name);
    await expect(having({ name: 'none', path: '/v' })).rejects.toMatchObject({ code: 'SBX_NOT_FOUND' });
    await expect(having({ name: 'data', path: '/v' }, { name: 'data', path: '/v/w' })).rejects.toMatchObject({
      code: 'SBX_INVALID_REQUEST',
    });
    for (const path of ['/proc', '/dev/shm', '/', 'relative', '/a/../b', '/.init', '/run/secrets']) {
      await expect(having({ name: 'data', path })).rejects.toMatchObject({ code: 'SBX_INVALID_REQUEST' });
    }
  });

  it.skipIf(!root || !existsSync('/dev/loop-control'))('volumes hold no more than their size', async () => {
    await client.volumes.create({ name: 'small', size_mb: 24 });
    const id = await having({ name: 'small', path: '/v' });
    const { exit } = await server.shell(id, 'head -c 64M /dev/zero > /v/big');
    expect(exit.code).not.toBe(0);
    await server.inside(id, 'rm /v/big; echo fits > /v/ok');
    const other = await having({ name: 'small', path: '/v' });
    expect(await server.inside(other, 'cat /v/ok')).toBe('fits\n');
    await client.sandboxes.destroy(id);
    await client.sandboxes.destroy(other);
    await client.volumes.delete('small');
  });
});
