/** Root file systems that a stranger packed, in each form that is understood: nothing of them leads out, or grows without end. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TarItem } from '../../support/image-archives.ts';
import { dockerArchive, ociArchive, tarOf } from '../../support/image-archives.ts';
import { LocalServer } from '../../support/local-server.ts';

const BUSYBOX = ['/bin/busybox', '/usr/bin/busybox'].find((path) => existsSync(path));
const server = await LocalServer.start((config) => ({
  limits: { ...config.limits, images: 200, image_mb: 1024 },
}));
const reason = BUSYBOX === undefined ? 'busybox-static is not installed' : await server.whyNot();
const { client } = server;

/** A place outside that every attack aims at. */
const outside = mkdtempSync(join(tmpdir(), 'sbx-outside-'));
const precious = join(outside, 'precious');

beforeAll(() => writeFileSync(precious, 'untouched', { mode: 0o600 }));
afterAll(async () => {
  await server.close();
  rmSync(outside, { recursive: true });
});

const base = (): TarItem[] => [
  { name: 'bin/', type: '5' },
  { name: 'bin/busybox', body: readFileSync(BUSYBOX as string), mode: 0o755 },
  ...['sh', 'cat', 'ls', 'stat', 'test', 'echo', 'readlink'].map((name) => ({
    name: `bin/${name}`,
    type: '2',
    link: 'busybox',
  })),
];

const FORMS: Record<string, (tar: Buffer) => Buffer> = {
  tar: (tar) => tar,
  oci: (tar) => ociArchive({ layers: [[tar]] }).archive,
  docker: (tar) => dockerArchive({ layers: [[tar]] }).archive,
};

const UP = '../'.repeat(30);

/** What must be refused as a whole. */
const REFUSED: Record<string, TarItem[]> = {
  'a way up': [{ name: `${UP}${precious}`, body: 'taken' }],
  'a way up in the middle': [{ name: `bin/${UP}${precious}`, body: 'taken' }],
  'a way up in a long name': [{ name: 'x', body: 'taken', pax: { path: `${UP}${precious}` } }],
  'a hard link up': [{ name: 'out', type: '1', link: `${UP}${precious}` }],
  'a hard link to an absolute name': [{ name: 'out', type: '1', link: precious }],
  'a hard link through a link': [
    { name: 'way', type: '2', link: outside },
    { name: 'out', type: '1', link: 'way/precious' },
  ],
  'a name too deep': [{ name: 'x', pax: { path: 'd/'.repeat(300) } }],
  'a part too long': [{ name: 'x', pax: { path: 'n'.repeat(300) } }],
  'a size that is not there': [{ name: 'big', body: 'x', size: 2 ** 32 }],
  'a size in the extension': [{ name: 'big', body: 'x', pax: { size: '9223372036854775807' } }],
  'a size below nothing': [{ name: 'big', body: 'x', pax: { size: '-1' } }],
  'a hard link to a directory': [
    { name: 'full/', type: '5' },
    { name: 'again', type: '1', link: 'full' },
  ],
  'a file where a full directory is': [
    { name: 'full/inner', body: 'x' },
    { name: 'full', body: 'y' },
  ],
  'links that lead to each other': [
    { name: 'a', type: '2', link: 'b' },
    { name: 'b', type: '2', link: 'a' },
    { name: 'c', type: '1', link: 'a/b/c' },
  ],
  'holes told in a way of its own': [{ name: 'holes', type: 'S', body: 'x' }],
};

/** What may come in: it leads nowhere. `inside` looks at what became of it. */
const HARMLESS: Record<string, { items: TarItem[]; inside: string; expected: string }> = {
  'an absolute name': {
    items: [{ name: precious, body: 'taken' }],
    inside: `cat ${precious}`,
    expected: 'taken',
  },
  'a file through an absolute link': {
    items: [
      { name: 'way', type: '2', link: outside },
      { name: 'way/precious', body: 'taken' },
    ],
    inside: 'cat /way/precious',
    expected: 'taken',
  },
  'a file through a link up': {
    items: [
      { name: 'way', type: '2', link: UP },
      { name: `way${precious}`, body: 'taken' },
    ],
    inside: `cat ${precious}`,
    expected: 'taken',
  },
  'a link that is then written as a file': {
    items: [
      { name: 'twice', type: '2', link: precious },
      { name: 'twice', body: 'second' },
    ],
    inside: 'cat /twice; readlink /twice; echo $?',
    expected: 'second1\n',
  },
  'the same name again and again': {
    items: [
      { name: 'one', body: 'first' },
      { name: 'one', body: 'second' },
      { name: 'one', type: '2', link: 'two' },
      { name: 'one', body: 'last' },
    ],
    inside: 'cat /one',
    expected: 'last',
  },
  'a directory where a link was, and a file in it': {
    items: [
      { name: 'way', type: '2', link: outside },
      { name: 'way/', type: '5' },
      { name: 'way/precious', body: 'taken' },
    ],
    inside: 'test -d /way && readlink /way; cat /way/precious',
    expected: 'taken',
  },
  'devices of both kinds': {
    items: [
      { name: 'memory', type: '3' },
      { name: 'disk', type: '4' },
    ],
    inside: 'ls / | busybox grep -cE "memory|disk"; true',
    expected: '0\n',
  },
  'marks of overlayfs and capabilities as attributes': {
    items: [
      {
        name: 'marked/',
        type: '5',
        pax: { 'SCHILY.xattr.trusted.overlay.redirect': '/', 'SCHILY.xattr.user.overlay.opaque': 'y' },
      },
      { name: 'marked/file', body: 'x', pax: { 'SCHILY.xattr.security.capability': 'AAAA' } },
    ],
    inside: 'ls /marked',
    expected: 'file\n',
  },
};

function layers(): string[] {
  const path = join(server.dir, 'local', 'layers');
  return existsSync(path) ? readdirSync(path).sort() : [];
}

function unharmed(): void {
  expect(readdirSync(outside)).toEqual(['precious']);
  expect(readFileSync(precious, 'utf8')).toBe('untouched');
  const { nlink, uid, mode } = statSync(precious);
  expect({ nlink, uid, mode: mode & 0o777 }).toEqual({ nlink: 1, uid: process.getuid?.(), mode: 0o600 });
}

describe.skipIf(reason !== null)(`hostile images${reason === null ? '' : ` (${reason})`}`, () => {
  for (const [form, pack] of Object.entries(FORMS)) {
    it.each(Object.entries(REFUSED))(`${form}: %s is refused, and nothing is left`, async (_, items) => {
      const before = layers();
      await expect(client.images.import('bad', pack(tarOf(items)))).rejects.toMatchObject({
        code: expect.stringMatching(/^SBX_(INVALID_REQUEST|PAYLOAD_TOO_LARGE)$/),
      });
      expect(layers()).toEqual(before);
      unharmed();
    });

    it.each(Object.entries(HARMLESS))(
      `${form}: %s stays inside`,
      async (name, { items, inside, expected }) => {
        const image = `ok-${form}-${Object.keys(HARMLESS).indexOf(name)}`;
        await client.images.import(image, pack(tarOf([...base(), ...items])));
        unharmed();
        const profile = `profile.${image}`;
        await client.profiles.push({ id: profile, version: '1.0.0', image });
        const { sandbox_id } = await client.sandboxes.create({ profile });
        expect(await server.inside(sandbox_id, inside)).toBe(expected);
        await client.sandboxes.destroy(sandbox_id);
        unharmed();
      },
    );
  }

  it('whiteouts remove the lower files of the image, and nothing else', async () => {
    const upper = tarOf([
      { name: 'kept/.wh.gone' },
      { name: 'kept/.wh.never-there' },
      { name: '.wh.whole' },
      { name: 'kept/.wh..wh.aufs', body: 'not a file' },
    ]);
    const lower = tarOf([
      ...base(),
      { name: 'kept/gone', body: 'x' },
      { name: 'kept/stays', body: 'x' },
      { name: 'whole/inner', body: 'x' },
    ]);
    await client.images.import('whiteouts', ociArchive({ layers: [[lower], [upper]] }).archive);
    await client.profiles.push({ id: 'profile.whiteouts', version: '1.0.0', image: 'whiteouts' });
    const { sandbox_id } = await client.sandboxes.create({ profile: 'profile.whiteouts' });
    expect(await server.inside(sandbox_id, 'ls -A /kept; test -e /whole || echo removed')).toBe(
      'stays\nremoved\n',
    );
    await client.sandboxes.destroy(sandbox_id);
    for (const name of ['.wh..', '.wh...', 'kept/.wh.'])
      await expect(
        client.images.import('bad', ociArchive({ layers: [[lower], [tarOf([{ name }])]] }).archive),
        name,
      ).rejects.toMatchObject({ code: 'SBX_INVALID_REQUEST' });
    unharmed();
  });

  it('a manifest that names a layer elsewhere finds none', async () => {
    const { archive } = dockerArchive({ layers: [[tarOf(base())]] });
    const name = Buffer.from('layer0/layer.tar');
    const elsewhere = Buffer.from(precious.padEnd(name.length, '/').slice(0, name.length));
    const at = archive.lastIndexOf(name);
    elsewhere.copy(archive, at);
    await expect(client.images.import('bad', archive)).rejects.toMatchObject({ code: 'SBX_INVALID_REQUEST' });
    unharmed();
  });
});
