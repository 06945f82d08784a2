/** Snapshots as files: what goes out comes back, and nothing comes in that is not what it says. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { TarEntry } from '../../../src/archive/tar/format.ts';
import { readTreeArchive, writeTreeArchive } from '../../../src/core/assets/tree-archive.ts';
import { LocalServer } from '../../support/local-server.ts';

const server = await LocalServer.start();
const other = await LocalServer.start();
const reason = await server.whyNot();

const PREPARE = [
  'mkdir -p tree/inner empty; echo text > tree/inner/file; head -c 300000 /dev/urandom > tree/random',
  'ln tree/random tree/linked; ln -s ../nowhere tree/symbolic; mkfifo tree/pipe; chmod 750 tree; chmod 4755 tree/inner/file',
  `touch "tree/$(printf 'n%.0s' $(seq 1 180))"; mkdir -p "$(printf 'deep/%.0s' $(seq 1 40))"`,
].join('; ');
const LOOK =
  'cd; find . -mindepth 1 -printf "%P %y %m %U:%G %s %l %Ts\\n" | grep -v "^\\." | sort; sha256sum tree/random; stat -c %i tree/random tree/linked | uniq | wc -l; test -e /var/tmp || echo removed; cat /etc/by-root';

async function bytesOf(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}

async function* once(data: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < data.length; at += 65_536) yield data.subarray(at, at + 65_536);
}

interface Parts {
  header: Record<string, unknown>;
  manifest: { host: string[]; skeleton: boolean; layers: { digest: string; bytes: number }[] };
  layers: Buffer[];
}

/** A file taken apart and put together again, so that a test can change one thing in it. */
async function changed(file: Buffer, change: (parts: Parts) => void): Promise<Buffer> {
  const end = file.indexOf('\n');
  const contents: Buffer[] = [];
  for await (const { body } of readTreeArchive(once(file.subarray(end + 1))))
    contents.push(await bytesOf(body));
  const [manifest, ...layers] = contents;
  const parts: Parts = {
    header: JSON.parse(file.subarray(0, end).toString()),
    manifest: JSON.parse((manifest as Buffer).toString()),
    layers,
  };
  change(parts);
  const entries = async function* (): AsyncGenerator<TarEntry> {
    const plain = { kind: 'file' as const, mode: 0o600, modifiedAtMs: 0, linkTarget: null };
    const text = Buffer.from(JSON.stringify(parts.manifest));
    yield { ...plain, name: 'snapshot.json', size: text.length, body: once(text) };
    for (const [n, layer] of parts.layers.entries())
      yield { ...plain, name: `layers/${n}.tar`, size: layer.length, body: once(layer) };
  };
  return Buffer.concat([
    Buffer.from(`${JSON.stringify(parts.header)}\n`),
    await bytesOf(writeTreeArchive(entries())),
  ]);
}

function relabel(parts: Parts): void {
  parts.manifest.layers = parts.layers.map((layer) => ({
    digest: `sha256:${createHash('sha256').update(layer).digest('hex')}`,
    bytes: layer.length,
  }));
}

/** A tar with one entry, headers written by hand: no tool would write such a thing. */
function hostileLayer(name: string, type: string, link = '', content = ''): Buffer {
  const block = Buffer.alloc(512);
  block.write(name, 0);
  block.write('0000755\0', 100);
  block.write('0000000\0', 108);
  block.write('0000000\0', 116);
  block.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
  block.write('00000000000\0', 136);
  block.write('        ', 148);
  block.write(type, 156);
  block.write(link, 157);
  block.write('ustar\x0000', 257);
  block.write('0000001\0', 329);
  block.write('0000003\0', 337);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  const body = Buffer.alloc(Math.ceil(content.length / 512) * 512);
  body.write(content);
  return Buffer.concat([block, body, Buffer.alloc(1024)]);
}

afterAll(async () => {
  await server.close();
  await other.close();
});

describe.skipIf(reason !== null)(`snapshot files${reason === null ? '' : ` (${reason})`}`, () => {
  let file: Buffer = Buffer.alloc(0);
  let looked = '';

  it('a snapshot is exported as one file and imported unchanged on another machine', async () => {
    const { sandbox_id: id } = await server.client.sandboxes.create({ profile: 'profile.agent-dev' });
    await server.inside(id, PREPARE);
    await server.inside(id, 'rm -r /var/tmp; echo root > /etc/by-root', 'root');
    looked = await server.inside(id, LOOK);
    expect(looked).toContain('tree/random');
    const { snapshot_id } = await server.client.sandboxes.snapshot(id, {
      name: 'travels',
      labels: { a: 'b' },
    });
    file = await bytesOf(await server.client.snapshots.export(snapshot_id));
    const { digest } = await server.client.snapshots.get(snapshot_id);
    expect(digest).toBe(JSON.parse(file.subarray(0, file.indexOf('\n')).toString()).digest);
    const again = await bytesOf(await server.client.snapshots.export(snapshot_id));
    expect(createHash('sha256').update(again).digest('hex')).toBe(
      createHash('sha256').update(file).digest('hex'),
    );
    const imported = await other.client.snapshots.import(once(file));
    expect(imported).toMatchObject({
      name: 'travels',
      labels: { a: 'b' },
      cause: 'import',
      state: 'available',
    });
    expect(imported.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    const restored = await other.client.snapshots.restore(imported.snapshot_id);
    expect(await other.inside(restored.sandbox_id, LOOK)).toBe(looked);
    const layers = () => readdirSync(join(other.dir, 'local', 'layers')).length;
    const before = layers();
    const twice = await other.client.snapshots.import(once(file));
    expect(twice.digest).toBe(imported.digest);
    expect(layers()).toBe(before);
    expect(readdirSync(join(other.dir, 'local', 'import'))).toEqual([]);
  });

  it('a snapshot file that was cut off, changed, or is something else is refused', async () => {
    const attempts: Record<string, Buffer> = {
      nothing: Buffer.from('\n'),
      'no header': file.subarray(file.indexOf('\n') + 1),
      'an endless header': Buffer.alloc(300_000, 0x61),
      'cut off': file.subarray(0, file.length - 100_000),
      'another byte': await changed(file, ({ layers }) => {
        const layer = layers[0] as Buffer;
        layer[layer.length >> 1] = (layer[layer.length >> 1] as number) ^ 1;
      }),
      'a part too many': await changed(file, ({ layers }) => void layers.push(Buffer.alloc(1024))),
      'a part too few': await changed(file, ({ layers }) => void layers.pop()),
      'the host directories': await changed(file, ({ manifest }) => void manifest.host.push('etc')),
      'another backend': await changed(
        file,
        ({ header }) => void Object.assign(header, { extension: 'ext.saas-stub' }),
      ),
      'another version': await changed(file, ({ header }) => void Object.assign(header, { version: 2 })),
    };
    for (const [what, bytes] of Object.entries(attempts)) {
      const tried = other.client.snapshots.import(once(bytes));
      await expect(tried, what).rejects.toMatchObject({
        code: expect.stringMatching(/INVALID|UNSUPPORTED|REFUSED/),
      });
    }
    const unknown = await changed(
      file,
      ({ header }) => void Object.assign(header, { profile: 'profile.no-such' }),
    );
    await expect(other.client.snapshots.import(once(unknown))).rejects.toMatchObject({
      code: 'SBX_PROFILE_NOT_FOUND',
    });
    const named = await other.client.snapshots.import(once(unknown), { profile: 'profile.agent-dev' });
    expect(named.profile).toBe('profile.agent-dev');
    expect(readdirSync(join(other.dir, 'local', 'import'))).toEqual([]);
  });

  it('a layer holds nothing that leads out of it: links, devices, ways up, absolute names', async () => {
    const trap = join(other.dir, 'trap');
    writeFileSync(trap, 'untouched');
    const layers: Record<string, Buffer[]> = {
      'a way up': [hostileLayer('../../../../trap', '0', '', 'taken')],
      'an absolute name': [hostileLayer(trap, '0', '', 'taken')],
      'a hard link out': [hostileLayer('out', '1', '/etc/shadow')],
      'a device': [hostileLayer('disk', '4')],
      'a memory device': [hostileLayer('mem', '3')],
      'a link and through it': [
        Buffer.concat([
          hostileLayer('way', '2', other.dir).subarray(0, 512),
          hostileLayer('way/trap', '0', '', 'taken'),
        ]),
      ],
    };
    for (const [what, hostile] of Object.entries(layers)) {
      const bytes = await changed(file, (parts) => {
        parts.layers = hostile;
        relabel(parts);
      });
      const imported = await other.client.snapshots.import(once(bytes)).catch(() => null);
      if (imported !== null) {
        const restored = await other.client.snapshots.restore(imported.snapshot_id);
        const found = await other.inside(
          restored.sandbox_id,
          'ls -l /disk /mem 2>/dev/null | grep -c "^[bc]"; cat /out /trap 2>/dev/null | grep -c root; true',
          'root',
        );
        expect(found, what).toBe('0\n0\n');
        await other.client.sandboxes.destroy(restored.sandbox_id);
      }
      expect(readdirSync(other.dir), what).toContain('trap');
      expect(readFileSync(trap, 'utf8'), what).toBe('untouched');
    }
  });
});
