/** Snapshots that are kept here: what they may take, when they go, and that they are what was taken. */
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { ResolvedConfig } from '../../../src/main/config/config.ts';
import { LocalServer } from '../../support/local-server.ts';

const vault = mkdtempSync(join(tmpdir(), 'sbx-vault-'));
const QUOTA_MB = 40;
const quick = { reconcile: 300 };
const withVault = (config: ResolvedConfig) => ({
  timing: { ...config.timing, ...quick },
  secrets: { ...config.secrets, directory: vault },
});
let server = await LocalServer.start(withVault);
const tight = await LocalServer.start((config) => ({
  timing: { ...config.timing, ...quick },
  limits: { ...config.limits, snapshot_mb: QUOTA_MB },
  retention: { ...config.retention, snapshots: 8 },
}));
const reason = await server.whyNot();
let { client } = server;

afterAll(async () => {
  await server.close();
  await tight.close();
  rmSync(vault, { recursive: true });
});

interface Kept {
  readonly layers: readonly string[];
}

const recordOf = (one: LocalServer, id: string): Kept =>
  JSON.parse(readFileSync(join(one.dir, 'local', 'snapshots', `${id}.json`), 'utf8'));

const created = async (one: LocalServer, profile = 'profile.agent-dev') =>
  (await one.client.sandboxes.create({ profile })).sandbox_id;

async function bytesOf(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}

describe.skipIf(reason !== null)(`kept snapshots${reason === null ? '' : ` (${reason})`}`, () => {
  it('kept snapshots take no more bytes than the workspace may have, also those that became a layer as they were', async () => {
    const id = await created(tight);
    const take = async (name: string) => await tight.client.sandboxes.snapshot(id, { name });
    const grow = async (name: string) =>
      void (await tight.inside(id, `head -c ${30 << 20} /dev/urandom > ${name}; sync`));
    await grow('one');
    const first = await take('first');
    await grow('two');
    await take('second');
    await grow('three');
    await expect(take('third')).rejects.toMatchObject({
      code: 'SBX_QUOTA_EXCEEDED',
      detail: expect.stringContaining(`${QUOTA_MB} MiB`),
    });
    const { size_bytes } = await tight.client.snapshots.get(first.snapshot_id);
    expect(size_bytes).toBeGreaterThanOrEqual(30 << 20);
    expect(size_bytes).toBeLessThan(60 << 20);
    await tight.client.snapshots.delete(first.snapshot_id);
    expect((await take('third')).state).toBe('available');
    // What stands on a deleted one goes on.
    expect(await tight.inside(id, 'ls one two three | wc -l')).toBe('3\n');
    for await (const { snapshot_id } of tight.client.snapshots.list())
      await tight.client.snapshots.delete(snapshot_id);
  });

  it('kept snapshots are deleted when their time is over, with their layers; a name keeps one', async () => {
    const id = await created(tight);
    const named = await tight.client.sandboxes.snapshot(id, { name: 'stays' });
    const asked = await tight.client.sandboxes.snapshot(id, { name: 'asked', retain: '1s' });
    const plain = await tight.client.sandboxes.snapshot(id);
    const { layers } = recordOf(tight, plain.snapshot_id);
    const own = join(tight.dir, 'local', dirname(layers[0] as string));
    for (const { snapshot_id } of [asked, plain])
      await expect
        .poll(() => tight.client.snapshots.get(snapshot_id).catch(({ code }) => code), { timeout: 60_000 })
        .toBe('SBX_NOT_FOUND');
    await expect.poll(() => existsSync(own), { timeout: 60_000 }).toBe(false);
    expect((await tight.client.snapshots.get(named.snapshot_id)).state).toBe('available');
  });

  it('kept snapshots in a long chain are made into one layer that shows the same', async () => {
    let id = await created(server);
    await server.inside(id, 'echo x > gone-later; mkdir cut; echo x > cut/old');
    let taken = await client.sandboxes.snapshot(id, { name: 'chain-0' });
    for (let n = 1; n <= 21; n++) {
      await client.sandboxes.destroy(id);
      id = (await client.snapshots.restore(taken.snapshot_id)).sandbox_id;
      const change = n === 3 ? 'rm gone-later; rm -r cut; mkdir cut; echo new > cut/new;' : '';
      await server.inside(id, `${change} echo ${n} > file-${n}; chmod 600 file-${n}`);
      const before = taken;
      taken = await client.sandboxes.snapshot(id, { name: `chain-${n}` });
      await client.snapshots.delete(before.snapshot_id);
    }
    expect(recordOf(server, taken.snapshot_id).layers.length).toBeLessThan(20);
    const last = (await client.snapshots.restore(taken.snapshot_id)).sandbox_id;
    const look =
      'ls -d file-* | wc -l; cat file-1 file-21; stat -c "%U %a" file-1; ls cut; ls gone-later 2>&1 | wc -l';
    expect(await server.inside(last, look)).toBe('21\n1\n21\nuser 600\nnew\n1\n');
    for (const one of [id, last]) await client.sandboxes.destroy(one);
    await client.snapshots.delete(taken.snapshot_id);
  });

  it('kept snapshots with one changed bit are not restored, and not exported', async () => {
    const id = await created(server);
    await server.inside(id, 'head -c 300000 /dev/urandom > precious');
    const { snapshot_id } = await client.sandboxes.snapshot(id, { name: 'flipped' });
    const [layer = ''] = recordOf(server, snapshot_id).layers;
    const place = join(server.dir, 'local', dirname(layer));
    await expect.poll(() => existsSync(join(place, 'content.json')), { timeout: 60_000 }).toBe(true);
    // A process looks once at what it did not seal itself.
    await server.stop();
    server = await LocalServer.start(withVault, server.dir);
    ({ client } = server);
    const [file = ''] = globSync(`${place}/**/precious`);
    const bytes = readFileSync(file);
    bytes[150_000] = (bytes[150_000] as number) ^ 1;
    writeFileSync(file, bytes);
    await expect(client.snapshots.restore(snapshot_id)).rejects.toMatchObject({
      code: 'SBX_SNAPSHOT_DAMAGED',
    });
    await expect(client.snapshots.export(snapshot_id)).rejects.toMatchObject({
      code: 'SBX_SNAPSHOT_DAMAGED',
    });
    await client.sandboxes.destroy(id);
    await client.snapshots.delete(snapshot_id);
  });

  it('kept snapshots hold no secret, and special files as what they are', async () => {
    const secret_refs = [
      { name: 'TOKEN', provider: 'file', delivery: 'env' as const },
      { name: 'KEY', provider: 'file', delivery: 'file' as const },
    ];
    for (const { name } of secret_refs)
      writeFileSync(join(vault, name), `hidden-${name}-value`, { mode: 0o600 });
    await client.profiles.push({
      id: 'profile.secretive',
      version: '1.0.0',
      extension: 'ext.local',
      setup: { secret_refs },
    });
    const id = await created(server, 'profile.secretive');
    expect(await server.inside(id, 'echo $TOKEN; cat /run/secrets/KEY')).toContain('hidden-KEY-value');
    await server.inside(
      id,
      'mkfifo pipe; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'socket\')"; ln -s /etc/shadow link; cp /usr/bin/env own; chmod 4755 own; mknod null c 1 3 2>/dev/null; ls null 2>/dev/null; true',
    );
    const { snapshot_id } = await client.sandboxes.snapshot(id, { name: 'secretive' });
    const file = await bytesOf(await client.snapshots.export(snapshot_id));
    expect(file.length).toBeGreaterThan(10_000);
    for (const { name } of secret_refs) expect(file.includes(`hidden-${name}-value`)).toBe(false);
    const layers = join(server.dir, 'local', 'layers');
    expect(globSync(`${layers}/**/run/secrets/*`)).toEqual([]);
    await client.sandboxes.destroy(id);
    const restored = (await client.snapshots.restore(snapshot_id)).sandbox_id;
    const look = 'stat -c "%N %F %a" pipe link own; test -e null && echo device; true';
    expect(await server.inside(restored, look)).toBe(
      "'pipe' fifo 644\n'link' -> '/etc/shadow' symbolic link 777\n'own' regular file 4755\n",
    );
    // Restored, it has its secrets as they are now, not as they were.
    expect(await server.inside(restored, 'cat /run/secrets/KEY')).toBe('hidden-KEY-value');
    await client.sandboxes.destroy(restored);
  });
});
