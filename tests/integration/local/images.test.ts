/** Images of `ext.local`: root file systems that somebody else packed. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import type { TarItem } from '../../support/image-archives.ts';
import { digestOf, dockerArchive, ociArchive, tarOf } from '../../support/image-archives.ts';
import { LocalServer } from '../../support/local-server.ts';

const BUSYBOX = ['/bin/busybox', '/usr/bin/busybox'].find((path) => existsSync(path));
const server = await LocalServer.start((config) => ({
  limits: { ...config.limits, images: 40, image_mb: 64 },
}));
const reason = BUSYBOX === undefined ? 'busybox-static is not installed' : await server.whyNot();
const { client } = server;

const APPLETS = [
  'sh',
  'cat',
  'ls',
  'id',
  'pwd',
  'env',
  'stat',
  'test',
  'touch',
  'readlink',
  'grep',
  'wc',
  'find',
];

function base(): TarItem[] {
  return [
    { name: './', type: '5' },
    { name: 'bin/', type: '5' },
    { name: 'etc/', type: '5' },
    { name: 'etc/passwd', body: 'root:x:0:0:root:/root:/bin/sh\napp:x:1234:1234:app:/srv:/bin/sh\n' },
    { name: 'bin/busybox', body: readFileSync(BUSYBOX as string), mode: 0o755 },
    ...APPLETS.map((name) => ({ name: `bin/${name}`, type: '2', link: 'busybox' })),
    { name: 'srv/', type: '5', uid: 1234 },
    { name: 'srv/old', body: 'old' },
    { name: 'srv/dir/kept', body: 'below' },
    { name: 'srv/su', body: 'x', mode: 0o4755 },
  ];
}

async function sandboxOf(image: string, extra: object = {}): Promise<string> {
  const id = `profile.image-${Math.random().toString(36).slice(2, 10)}`;
  await client.profiles.push({ id, version: '1.0.0', image, ...extra });
  return (await client.sandboxes.create({ profile: id })).sandbox_id;
}

async function importing(name: string, archive: Buffer) {
  return await client.images.import(name, archive);
}

const layerNames = () => readdirSync(join(server.dir, 'local', 'layers'));

afterAll(() => server.close());

describe.skipIf(reason !== null)(`images${reason === null ? '' : ` (${reason})`}`, () => {
  for (const [how, pack] of Object.entries({
    plain: (tar: Buffer) => tar,
    gzip: (tar: Buffer) => gzipSync(tar),
    zstd: (tar: Buffer) => zstdCompressSync(tar),
  })) {
    it(`images may be the tar of a root file system, ${how}`, async () => {
      const tar = tarOf(base());
      const image = await importing(`tar-${how}`, pack(tar));
      expect(image).toMatchObject({
        source: 'tar',
        digest: digestOf(tar),
        state: 'available',
        shared: false,
      });
      const id = await sandboxOf(image.reference as string);
      expect(await server.inside(id, 'id -u; cat /srv/old; ls /usr 2>&1 || true')).toMatch(/^0\nold/);
      expect(await server.inside(id, 'stat -c "%u %a" /srv /srv/su')).toBe('1234 755\n0 4755\n');
      expect((await client.sandboxes.get(id)).extension).toBe('ext.local');
    });
  }

  it('images may be an OCI layout, with whiteouts, opaque directories and a configuration that is used', async () => {
    const lower = tarOf(base());
    const upper = tarOf([
      { name: 'srv/.wh.old' },
      { name: 'srv/dir/.wh..wh..opq' },
      { name: 'srv/dir/new', body: 'above' },
      {
        name: 'srv/mine',
        body: 'm',
        uid: 1234,
        pax: { 'SCHILY.xattr.user.note': 'hello', 'SCHILY.xattr.trusted.overlay.opaque': 'y' },
      },
    ]);
    const config = {
      Env: ['FROM_IMAGE=yes', 'PATH=/bin'],
      User: 'app',
      WorkingDir: '/srv/work/deep',
      Entrypoint: ['/bin/sh'],
    };
    const { archive, digest } = ociArchive({ layers: [[lower], [upper, gzipSync(upper)]], config });
    const image = await importing('oci', archive);
    expect(image).toMatchObject({
      source: 'oci',
      digest,
      config: { user: 'app', workdir: '/srv/work/deep' },
    });
    const id = await sandboxOf('oci');
    const { stdout } = await server.shell(
      id,
      'id -u; pwd; env | grep FROM_IMAGE; ls -A /srv /srv/dir; cat /srv/dir/new',
    );
    expect(stdout).toContain('1234\n/srv/work/deep\nFROM_IMAGE=yes\n');
    expect(stdout).toContain('/srv/dir:\nnew\n');
    expect(stdout).not.toContain('old');
    expect(stdout.endsWith('above')).toBe(true);
    expect(await server.inside(id, 'id -u', 'root')).toBe('0\n');
    // The same layers are there once, whoever brings them.
    const before = layerNames().filter((name) => name.startsWith('layer-')).length;
    await importing('oci-again', archive);
    expect(layerNames().filter((name) => name.startsWith('layer-')).length).toBe(before);
  });

  it('images run as the user and the group that they name, by name or number', async () => {
    const groups = { name: 'etc/group', body: 'root:x:0:\napp:x:1234:\nextra:x:555:\n' };
    const layers: [Buffer][] = [[tarOf([...base(), groups])]];
    const ids = async (User: string) => {
      const name = `as-${User.replace(':', '-')}`;
      await importing(name, ociArchive({ layers, config: { User } }).archive);
      return await server.shell(await sandboxOf(name), 'echo $(id -u):$(id -g)');
    };
    for (const [user, expected] of [
      ['app', '1234:1234'],
      ['app:extra', '1234:555'],
      ['app:600', '1234:600'],
      ['77:extra', '77:555'],
    ] as const)
      expect((await ids(user)).stdout).toBe(`${expected}\n`);
    await expect(ids('nosuch')).rejects.toThrow(/nosuch/);
    const own = await sandboxOf('as-app');
    expect(await server.inside(own, 'echo $(id -u):$(id -g)', '88:extra')).toBe('88:555\n');
  });

  it('images may be archives of docker save', async () => {
    const { archive, digest } = dockerArchive({ layers: [[tarOf(base())]], config: { Env: ['A=1'] } });
    const image = await importing('docker', archive);
    expect(image).toMatchObject({ source: 'docker', digest, config: { env: { A: '1' } } });
    expect(await server.inside(await sandboxOf('docker'), 'cat /srv/old')).toBe('old');
  });

  it('images are refused when a digest does not fit, or they are for another machine', async () => {
    const tar = tarOf(base());
    const wrong = ociArchive({ layers: [[tar, gzipSync(tarOf([{ name: 'other', body: 'x' }]))]] }).archive;
    await expect(importing('wrong', wrong)).rejects.toMatchObject({ code: 'SBX_INVALID_REQUEST' });
    const foreign = ociArchive({ layers: [[tar]], architecture: 's390x' }).archive;
    await expect(importing('foreign', foreign)).rejects.toThrow(/s390x/);
    const { archive } = ociArchive({ layers: [[tar]] });
    const at = archive.indexOf('"rootfs"');
    archive[at + 1] = 0x53;
    await expect(importing('tampered', archive)).rejects.toMatchObject({ code: 'SBX_INVALID_REQUEST' });
    for (const bytes of [Buffer.from('not a tar'), tar.subarray(0, 1500), gzipSync(tar).subarray(0, 3000)]) {
      await expect(importing('broken', bytes)).rejects.toMatchObject({ code: 'SBX_INVALID_REQUEST' });
    }
    expect((await client.images.list()).items.map(({ name }) => name)).not.toContain('broken');
  });

  it('images are refused when there is nothing in them, or nothing that is understood, and leave nothing', async () => {
    const before = (await client.images.list()).items.length;
    const nothing = [
      Buffer.alloc(0),
      Buffer.alloc(10_240),
      gzipSync(Buffer.alloc(10_240)),
      tarOf([{ name: './', type: '5' }]),
    ];
    for (const bytes of nothing)
      await expect(importing('nothing', bytes)).rejects.toMatchObject({
        code: 'SBX_INVALID_REQUEST',
        message: expect.stringMatching(/nothing in it/),
      });
    const xz = Buffer.from('/Td6WFoAAATm1rRGBMAAgAAA', 'base64');
    await expect(importing('xz', xz)).rejects.toMatchObject({
      code: 'SBX_INVALID_REQUEST',
      message: expect.stringMatching(/compressed with xz/),
      remedy: expect.stringMatching(/gzip/),
    });
    const holes = [
      [{ name: 'var/holes', type: 'S', body: 'x' }],
      [
        {
          name: 'var/GNUSparseFile.1/h',
          body: 'x',
          pax: { 'GNU.sparse.major': '1', 'GNU.sparse.name': 'var/holes' },
        },
      ],
    ];
    for (const items of holes)
      await expect(importing('holes', tarOf(items))).rejects.toMatchObject({
        message: expect.stringMatching(/"var\/holes".*sparse/),
        remedy: expect.stringMatching(/--sparse/),
      });
    expect((await client.images.list()).items).toHaveLength(before);
  });

  it('images that come again under the same name are the same, and count once', async () => {
    const tar = tarOf([{ name: 'file', body: 'again' }]);
    const { image_id } = await importing('again', tar);
    const before = (await client.images.list()).items.length;
    expect((await importing('again', gzipSync(tar))).image_id).toBe(image_id);
    expect((await importing('another', tar)).image_id).not.toBe(image_id);
    expect((await client.images.list()).items).toHaveLength(before + 1);
  });

  it('images lead nowhere outside, whatever their names and links say', async () => {
    const target = join(server.dir, 'escaped');
    const hostile: TarItem[] = [
      ...base(),
      { name: 'out', type: '2', link: server.dir },
      { name: 'out/escaped', body: 'through a link' },
      { name: 'up', type: '2', link: '../../../../../../../../..' },
      { name: `up${target}`, body: 'up and away' },
      { name: 'device', type: '3' },
      { name: 'disk', type: '4' },
      { name: `/${target}`, body: 'absolute' },
      { name: 'srv/cap', body: 'x', mode: 0o755, pax: { 'SCHILY.xattr.security.capability': 'AAAA' } },
    ];
    const image = await importing('hostile', tarOf(hostile));
    expect(existsSync(target)).toBe(false);
    const id = await sandboxOf(image.reference as string);
    expect(await server.inside(id, 'ls /device /disk 2>&1 | grep -c "No such"', 'root')).toBe('2\n');
    const layer = layerNames().find((name) => name === `tree-${(image.digest as string).slice(7)}`);
    const files = join(server.dir, 'local', 'layers', layer as string, 'fs');
    expect(statSync(join(files, 'srv/su')).uid).not.toBe(0);
    for (const name of ['../escaped', 'srv/../../escaped']) {
      await expect(importing('up', tarOf([{ name, body: 'x' }]))).rejects.toMatchObject({
        code: 'SBX_INVALID_REQUEST',
      });
    }
    await expect(
      importing('hard', tarOf([{ name: 'shadow', type: '1', link: '/etc/shadow' }])),
    ).rejects.toMatchObject({ code: 'SBX_INVALID_REQUEST' });
    expect(existsSync(target)).toBe(false);
  });

  it('images do not unfold without end', async () => {
    const bomb = gzipSync(Buffer.alloc(80 << 20));
    await expect(importing('bomb', bomb)).rejects.toMatchObject({ code: 'SBX_PAYLOAD_TOO_LARGE' });
    const sparse = tarOf([{ name: 'huge', size: 1 << 30, body: 'x' }]);
    await expect(importing('sparse', sparse)).rejects.toMatchObject({ code: 'SBX_INVALID_REQUEST' });
    expect(
      existsSync(join(server.dir, 'local', 'incoming'))
        ? readdirSync(join(server.dir, 'local', 'incoming'))
        : [],
    ).toEqual([]);
  });

  it('images that nothing provides are refused with a remedy', async () => {
    const id = 'profile.image-none';
    await client.profiles.push({ id, version: '1.0.0', image: 'nowhere' });
    await expect(client.sandboxes.create({ profile: id })).rejects.toMatchObject({
      code: 'SBX_NO_ROUTE',
      detail: expect.stringContaining('sandboxer images import'),
    });
  });

  it('go, and leave what was made from them: a sandbox, its snapshot and its fork', async () => {
    const image = await importing('gone', tarOf([...base(), { name: 'srv/only-here', body: 'mark' }]));
    const id = await sandboxOf(image.reference as string);
    await client.images.delete('gone');
    await expect(client.images.get('gone')).rejects.toMatchObject({ code: 'SBX_NOT_FOUND' });
    const { snapshot_id } = await client.sandboxes.snapshot(id);
    const restored = await client.snapshots.restore(snapshot_id);
    const fork = await client.sandboxes.fork(id);
    for (const one of [id, restored.sandbox_id, fork.sandbox_id])
      expect(await server.inside(one, 'cat /srv/only-here')).toBe('mark');
    await expect(client.sandboxes.recreate(id)).rejects.toMatchObject({ code: 'SBX_IMAGE_UNAVAILABLE' });
    for (const one of [id, restored.sandbox_id, fork.sandbox_id]) await client.sandboxes.destroy(one);
    await client.snapshots.delete(snapshot_id);
    const name = `tree-${(image.digest as string).slice(7)}`;
    await expect.poll(() => layerNames().includes(name), { timeout: 60_000 }).toBe(false);
  });

  it('images are gone from the disk with the last sandbox that was made from them', async () => {
    const image = await importing('last', tarOf([...base(), { name: 'srv/last', body: 'mark' }]));
    const name = `tree-${(image.digest as string).slice(7)}`;
    const id = await sandboxOf(image.reference as string);
    await client.images.delete('last');
    expect(await server.inside(id, 'cat /srv/last')).toBe('mark');
    expect(layerNames()).toContain(name);
    await client.sandboxes.destroy(id);
    await expect.poll(() => layerNames().includes(name), { timeout: 60_000 }).toBe(false);
  });

  it('images count against the workspace', async () => {
    const { items } = await client.images.list();
    const used = items.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
    expect(used).toBeGreaterThan(0);
    const filler = Buffer.alloc((64 << 20) - used - (1 << 20), 1);
    await importing('filler', tarOf([{ name: 'f', body: filler }]));
    await expect(
      importing('more', tarOf([{ name: 'f', body: Buffer.alloc(2 << 20, 2) }])),
    ).rejects.toMatchObject({
      status: 413,
    });
    await client.images.delete('filler');
  });
});
