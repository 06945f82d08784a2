/** Directories in each other, deeper than any path is long: captured, shown, counted and removed as all others are. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SpawnerClient } from '../../../src/extensions/local/engine/spawner-client.ts';
import { tarOf } from '../../support/image-archives.ts';
import { LocalServer } from '../../support/local-server.ts';
import { names, until } from './killable-server.ts';

const LEVELS = 3_000;
// With a limit on their bytes, snapshots are measured.
const server = await LocalServer.start(({ limits }) => ({ limits: { ...limits, snapshot_mb: 100_000 } }));
const { client } = server;
const reason = await server.whyNot();
const base = join(server.dir, 'local');

const perl = (script: string) => `perl -e '${script}'`;
/** Down from the directory at hand; at the bottom a file, with a further name next to it and one hundreds of levels above. */
const DIG = perl(`for (1..${LEVELS}) { mkdir "d" or die $!; chdir "d" or die $! }
  open my $f, ">", "bottom" or die; print $f "reached"; close $f;
  link "bottom", "again" or die; link "bottom", ("../" x 700) . "above" or die; chmod 0751, "." or die;`);
const LOOK = perl(`my ($depth, $above) = (0, 0);
  while (chdir "d") { $depth++; $above = (stat "above")[1] if -e "above" }
  open my $f, "<", "bottom" or die $!; my @facts = stat $f;
  printf "%d %s %d %d %o\\n", $depth, scalar <$f>, $facts[3], $facts[1] == $above, (stat ".")[2] & 07777;`);
const LOOKED = `${LEVELS} reached 3 1 751\n`;

async function dug(profile = 'profile.agent-dev'): Promise<string> {
  const { sandbox_id } = await client.sandboxes.create({ profile });
  await server.inside(sandbox_id, DIG);
  expect(await server.inside(sandbox_id, LOOK)).toBe(LOOKED);
  return sandbox_id;
}

/** How many layers the only sandbox that there is lies on. */
function layersBelow(): number {
  const [name = ''] = names(join(base, 'sandboxes'));
  return JSON.parse(readFileSync(join(base, 'sandboxes', name, 'record.json'), 'utf8')).layers.length;
}

/** What is made of it has all of it, and it goes on. */
async function captured(id: string): Promise<void> {
  const { snapshot_id } = await client.sandboxes.snapshot(id, { name: 'deep' });
  const made = [
    (await client.snapshots.restore(snapshot_id)).sandbox_id,
    (await client.sandboxes.fork(id)).sandbox_id,
  ];
  for (const one of [id, ...made]) expect(await server.inside(one, LOOK)).toBe(LOOKED);
  for (const one of made) await client.sandboxes.destroy(one);
  await client.snapshots.delete(snapshot_id);
}

async function nothingLeft(): Promise<void> {
  for (const part of ['layers', 'sandboxes', 'import', 'trash'])
    await until(`nothing is left in ${part}`, () => names(join(base, part)).length === 0 || null);
}

async function spawner(): Promise<string | undefined> {
  const one = await SpawnerClient.open(join(base, 'spawner.sock'), () => {});
  const { pid } = await one.call('hello');
  one.close();
  return pid;
}

async function bytesOf(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}

describe.skipIf(reason !== null)(`trees of ${LEVELS} levels${reason === null ? '' : ` (${reason})`}`, () => {
  let pid: string | undefined;

  beforeAll(async () => {
    const { sandbox_id } = await client.sandboxes.create({ profile: 'profile.agent-dev' });
    pid = await spawner();
    await client.sandboxes.destroy(sandbox_id);
  });

  afterAll(async () => {
    // It was the same all the time.
    expect(await spawner()).toBe(pid);
    await server.close();
  });

  it('deep trees are copied where something runs', async () => {
    const id = await dug();
    await client.background(id, { command: ['/bin/sleep', '600'] });
    await captured(id);
    expect(layersBelow()).toBe(1);
    await client.sandboxes.destroy(id);
    await nothingLeft();
  });

  it('deep trees become a layer as they are where nothing runs, and are counted', async () => {
    const id = await dug();
    const { snapshot_id } = await client.sandboxes.snapshot(id, { name: 'first' });
    await captured(id);
    expect(layersBelow()).toBeGreaterThan(1);
    expect((await client.snapshots.get(snapshot_id)).size_bytes).toEqual(expect.any(Number));
    await client.sandboxes.destroy(id);
    await client.snapshots.delete(snapshot_id);
    await nothingLeft();
  });

  it('deep trees are copied from a disk of limited size', async (context) => {
    const { items } = await client.extensions.list();
    const limits = items.find(({ id }) => id === 'ext.local')?.capabilities.resources;
    if (!limits?.includes('disk_mb')) context.skip('no disk can be limited here');
    const profile = 'profile.limited';
    const resources = { disk_mb: 128 };
    await client.profiles.push({ id: profile, version: '1.0.0', extension: 'ext.local', resources });
    const id = await dug(profile);
    await captured(id);
    await client.sandboxes.destroy(id);
    await nothingLeft();
  });

  it('deep trees in a long chain are made into one layer, also below what the host shows', async () => {
    let id = await dug();
    const below = `mkdir /usr/share/deep; cd /usr/share/deep; ${DIG}`;
    await server.inside(id, below, 'root');
    for (let n = 1; n <= 21; n++) {
      await server.inside(id, `echo ${n} > file-${n}`);
      const next = (await client.sandboxes.fork(id)).sandbox_id;
      await client.sandboxes.destroy(id);
      id = next;
    }
    expect(layersBelow()).toBeLessThan(20);
    expect(await server.inside(id, 'ls -d file-* | wc -l')).toBe('21\n');
    expect(await server.inside(id, LOOK)).toBe(LOOKED);
    expect(await server.inside(id, `cd /usr/share/deep; ${LOOK}`)).toBe(LOOKED);
    await client.sandboxes.destroy(id);
    await nothingLeft();
  });

  it('deep trees are refused for export and import, with a reason and a remedy', async () => {
    const { sandbox_id: id } = await client.sandboxes.create({ profile: 'profile.agent-dev' });
    const flat = await client.sandboxes.snapshot(id, { name: 'flat' });
    const file = await bytesOf(await client.snapshots.export(flat.snapshot_id));
    await server.inside(id, DIG);
    const deep = await client.sandboxes.snapshot(id, { name: 'deep' });
    await expect(client.snapshots.export(deep.snapshot_id)).rejects.toMatchObject({
      code: 'SBX_UNSUPPORTED',
      detail: expect.stringContaining('deeper than 250 levels'),
      remedy: expect.stringContaining('take a snapshot of that'),
    });

    const layer = tarOf([{ name: 'x', type: '5', pax: { path: 'd/'.repeat(300) } }]);
    const digest = `sha256:${createHash('sha256').update(layer).digest('hex')}`;
    const manifest = {
      version: 1,
      skeleton: true,
      host: [],
      process: { env: {}, user: null, cwd: null },
      layers: [{ digest, bytes: layer.length }],
    };
    const foreign = Buffer.concat([
      file.subarray(0, file.indexOf('\n') + 1),
      tarOf([
        { name: 'snapshot.json', body: JSON.stringify(manifest) },
        { name: 'layers/0.tar', body: layer },
      ]),
    ]);
    const before = names(join(base, 'layers')).sort().join();
    await expect(client.snapshots.import(Readable.from([foreign]))).rejects.toMatchObject({
      code: 'SBX_INVALID_REQUEST',
      detail: expect.stringContaining('deeper than 256 levels'),
      remedy: expect.any(String),
    });
    await until('nothing of it is left', () => names(join(base, 'layers')).sort().join() === before || null);

    await client.sandboxes.destroy(id);
    for (const { snapshot_id } of [flat, deep]) await client.snapshots.delete(snapshot_id);
    await nothingLeft();
  });
});
