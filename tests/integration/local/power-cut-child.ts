/**
 * Runs in a mount namespace of its own. The disk of its server is a file, mounted at POINT; what is in the file at a moment
 * is what a power cut at that moment would leave. After each answer the file is copied, and the copies are looked at as
 * a machine would after it came up again. Prints what it found as JSON: what was there, and what is.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { tarOf } from '../../support/image-archives.ts';
import { LocalServer } from '../../support/local-server.ts';

const [, , folder = '', disk = '', point = ''] = process.argv;
const LOOK = 'cat many/* | sha256sum';
const SIZE_MB = 16;

const state = join(point, 'state');
mkdirSync(state);
const server = await LocalServer.start(undefined, state);
const { client } = server;
const found: Record<string, unknown> = { reason: await server.whyNot() };

const sha256 = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest('hex');

/** Nothing of the server goes on meanwhile: it is in this very process. */
function cut(name: string): void {
  execFileSync('cp', ['--sparse=always', disk, join(folder, `${name}.img`)]);
}

/** The state directory as it is after that power cut. The mount goes with this process. */
function after(name: string): string {
  const place = join(folder, name);
  mkdirSync(place);
  execFileSync('mount', ['-o', 'loop', `${place}.img`, place]);
  return join(place, 'state', 'local');
}

const layersOf = (path: string): string[] => JSON.parse(readFileSync(path, 'utf8')).layers;

/** What `LOOK` tells, of the layers that a record names. */
function contentOf(local: string, record: string): string {
  const files = layersOf(join(local, record)).flatMap((layer) =>
    globSync(`${join(local, layer)}/home/user/many/*`),
  );
  return sha256(...files.sort().map((path) => readFileSync(path)));
}

/** So little that it is copied. */
async function written(id: string): Promise<string> {
  await server.inside(id, 'mkdir many; head -c 200000 /dev/urandom > many/one');
  return (await server.inside(id, LOOK)).slice(0, 64);
}

/** So many files that its disk becomes a layer as it is. */
async function filled(id: string, word: string): Promise<string> {
  const script = `mkdir many; i=0; while [ $i -lt 500 ]; do echo ${word} $i > many/$i; i=$((i+1)); done`;
  await server.inside(id, script);
  return (await server.inside(id, LOOK)).slice(0, 64);
}

async function snapshots(): Promise<void> {
  const { sandbox_id: id } = await client.sandboxes.create({ profile: 'profile.agent-dev' });
  const small = await written(id);
  const first = await client.sandboxes.snapshot(id, { name: 'small' });
  cut('copied');
  found.first = first.snapshot_id;
  found.copied = [small, contentOf(after('copied'), `snapshots/${first.snapshot_id}.json`)];

  await server.inside(id, 'rm -r many');
  const large = await filled(id, 'sealed');
  const second = await client.sandboxes.snapshot(id, { name: 'large' });
  cut('sealed');
  found.sealed = [large, contentOf(after('sealed'), `snapshots/${second.snapshot_id}.json`)];

  const file: Uint8Array[] = [];
  for await (const part of await client.snapshots.export(second.snapshot_id)) file.push(part);
  await client.sandboxes.destroy(id);
  for (const one of [first, second]) await client.snapshots.delete(one.snapshot_id);
  // One that is here already would be used again.
  const layers = join(state, 'local', 'layers');
  for (let tries = 0; tries < 1600 && readdirSync(layers).length > 0; tries++) await sleep(25);
  const third = await client.snapshots.import(Readable.from(file));
  cut('imported');
  found.imported = [large, contentOf(after('imported'), `snapshots/${third.snapshot_id}.json`)];
}

async function image(): Promise<void> {
  const body = Buffer.alloc(300_000, 'image');
  const archive = tarOf([
    { name: './', type: '5' },
    { name: 'home/user/many/0', body },
  ]);
  const { image_id } = await client.images.import('brought', archive);
  cut('image');
  found.image = [sha256(body), contentOf(after('image'), `images/${image_id}.json`)];
}

async function volume(): Promise<void> {
  const { volume_id } = await client.volumes.create({ name: 'sized', size_mb: SIZE_MB });
  cut('volume');
  const place = join(after('volume'), 'volumes', volume_id);
  const { status } = spawnSync('e2fsck', ['-fn', join(place, 'image')]);
  const owned = readFileSync(join(place, 'owner'), 'utf8').length > 0;
  found.volume = [
    [SIZE_MB << 20, 0, true],
    [statSync(join(place, 'image')).size, status, owned],
  ];
}

async function fork(): Promise<void> {
  await client.profiles.push({
    id: 'profile.lasting',
    version: '1.0.0',
    extension: 'ext.local',
    persistence: 'persistent',
  });
  const { sandbox_id: source } = await client.sandboxes.create({ profile: 'profile.lasting' });
  const content = await written(source);
  const { sandbox_id } = await client.sandboxes.fork(source);
  cut('fork');
  const local = after('fork');
  const records = globSync(`${local}/sandboxes/*/record.json`);
  const [record = ''] = records.filter((path) => layersOf(path).length > 1);
  found.fork = [content, contentOf(local, record.slice(local.length))];
  for (const id of [source, sandbox_id]) await client.sandboxes.destroy(id);
}

/** The store, too, knows of it: what was acknowledged is there on the machine that came up again. */
async function restored(snapshotId: string): Promise<string> {
  const again = await LocalServer.start(undefined, join(folder, 'copied', 'state'));
  try {
    const { sandbox_id } = await again.client.snapshots.restore(snapshotId);
    return (await again.inside(sandbox_id, LOOK)).slice(0, 64);
  } finally {
    await again.close();
  }
}

try {
  if (found.reason === null) {
    await snapshots();
    await image();
    await volume();
    await fork();
    const [content] = found.copied as string[];
    found.restored = [content, await restored(found.first as string)];
  }
} finally {
  await server.close();
}
process.stdout.write(JSON.stringify(found));
