/**
 * Snapshots as tar archives: `snapshot.json` and the archive of each layer, topmost first. An import is untrusted: sizes are
 * bounded, every layer must match its digest, no name in it becomes a path of the host, and it may be based only on directories
 * of the host that the image `host` shows anyway.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { TarEntry } from '../../../archive/tar/format.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import { readTreeArchive, writeTreeArchive } from '../../../core/assets/tree-archive.ts';
import type { Engine } from '../engine/engine.ts';
import { failed } from '../engine/failure.ts';
import { SpawnerError } from '../engine/spawner-client.ts';
import type { Layers } from '../state/layers.ts';
import type { Layout } from '../state/layout.ts';
import type { RootFs } from '../state/root-fs.ts';
import { RootFsShape } from '../state/root-fs.ts';
import type { LayerContent, LayerDigests } from './layer-digests.ts';
import { chainDigest, MOST_BYTES } from './layer-digests.ts';
import { packedLayer } from './packed-layer.ts';

const MANIFEST = 'snapshot.json';
const MOST_MANIFEST_BYTES = 65_536;
const MOST_LAYERS = 64;
const MOST_ENTRIES = 4_000_000;

const Manifest = z.strictObject({
  version: z.literal(1),
  /** Whether it is based on the skeleton of the image `host`, which is not in it. */
  skeleton: z.boolean(),
  host: z.array(z.string().max(32)).max(8),
  process: RootFsShape.process,
  layers: z
    .array(
      z.strictObject({
        digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
        bytes: z.number().int().min(0).max(MOST_BYTES),
      }),
    )
    .max(MOST_LAYERS),
});

/** Errors of the kernel for entries that are refused. */
const UNPACK_WORDS = new Map([
  ['Bad message', 'it is not a tar archive that can be unpacked'],
  ['File name too long', 'a path in it is deeper than 256 levels, or longer than 4095 bytes'],
  ['File too large', 'there are too many files in it, or too many bytes'],
]);

export interface ArchiveParts {
  readonly engine: Engine;
  readonly layout: Layout;
  readonly layers: Layers;
  readonly digests: LayerDigests;
}

function refused(detail: string): SandboxerError {
  return new SandboxerError('SBX_INVALID_REQUEST', detail, {
    backend: 'ext.local',
    creation: 'not_created',
    remedy: 'Export the snapshot again, and import the file as it is.',
  });
}

function isSkeleton(layer: string): boolean {
  return layer.startsWith('skeleton/');
}

export async function exportArchive(
  parts: ArchiveParts,
  { layers, host, process }: RootFs,
): Promise<{ digest: string; body: AsyncIterable<Uint8Array> }> {
  const own = layers.filter((layer) => !isSkeleton(layer));
  const contents: LayerContent[] = [];
  for (const layer of own) {
    await parts.digests.verify(layer);
    contents.push(await parts.digests.seal(layer).catch(notCarried));
  }
  const manifest = {
    version: 1 as const,
    skeleton: own.length < layers.length,
    host: [...host],
    process,
    layers: contents.map(({ digest, archiveBytes }) => ({ digest, bytes: archiveBytes })),
  };
  const file = { kind: 'file' as const, mode: 0o600, modifiedAtMs: 0, linkTarget: null };
  const text = Buffer.from(JSON.stringify(manifest));
  const entries = async function* (): AsyncGenerator<TarEntry> {
    yield { ...file, name: MANIFEST, size: text.length, body: once(text) };
    for (const [n, layer] of own.entries()) {
      const { archiveBytes } = contents[n] as LayerContent;
      const body = packedLayer(parts.engine, parts.layout, layer, MOST_BYTES);
      yield { ...file, name: `layers/${n}.tar`, size: archiveBytes, body };
    }
  };
  const digest = chainDigest(
    contents.map((content) => content.digest),
    host,
  );
  return { digest, body: writeTreeArchive(entries()) };
}

/** Maps the spawner's refusals of a layer that cannot be packed; any other error is no fault of the layer. */
function notCarried(error: unknown): never {
  const cause = error instanceof SandboxerError ? error.cause : undefined;
  if (!(cause instanceof SpawnerError && cause.code === 'pack')) throw failed(error);
  throw new SandboxerError('SBX_UNSUPPORTED', `It holds files that no archive can carry: ${cause.message}.`, {
    backend: 'ext.local',
    remedy: 'Restore it, remove or rename what is named, take a snapshot of that, and export it.',
    cause,
  });
}

export interface ImportedArchive {
  readonly rootFs: RootFs;
  readonly digest: string;
  readonly sizeBytes: number;
}

export async function importArchive(
  parts: ArchiveParts,
  body: AsyncIterable<Uint8Array>,
  hostImage: RootFs,
): Promise<ImportedArchive> {
  const staging = join('import', randomBytes(8).toString('hex'));
  mkdirSync(join(parts.layout.base, staging), { recursive: true, mode: 0o700 });
  const made: string[] = [];
  let sizeBytes = 0;
  try {
    const entries = readTreeArchive(body);
    const manifest = await readManifest(entries);
    if (manifest.host.some((name) => !hostImage.host.includes(name)))
      throw refused('It wants to lie on directories of the host.');
    for (const [n, { digest, bytes }] of manifest.layers.entries()) {
      const { value: entry } = await entries.next();
      if (entry?.name !== `layers/${n}.tar` || entry.kind !== 'file' || entry.size !== bytes)
        throw refused('Its parts are not those that it lists.');
      const archive = join(staging, `${n}.tar`);
      if ((await stored(join(parts.layout.base, archive), entry.body)) !== digest)
        throw refused('A part of it is damaged.');
      sizeBytes += bytes;
      made.push(await layerFrom(parts, archive, { digest, archiveBytes: bytes }));
      rmSync(join(parts.layout.base, archive));
    }
    if (!(await entries.next()).done) throw refused('There is more in it than it lists.');
    if (made.length === 0 && !manifest.skeleton) throw refused('There is nothing in it.');
    const digest = chainDigest(
      manifest.layers.map((layer) => layer.digest),
      manifest.host,
    );
    return {
      rootFs: {
        layers: [...made, ...(manifest.skeleton ? hostImage.layers : [])],
        host: manifest.host,
        process: manifest.process,
      },
      digest,
      sizeBytes,
    };
  } catch (error) {
    for (const layer of made) parts.layers.settled(layer);
    const ofTheMachine = error instanceof Error && 'code' in error;
    throw ofTheMachine ? failed(error, 'not_created') : refused('The file is truncated, or not an archive.');
  } finally {
    rmSync(join(parts.layout.base, staging), { recursive: true, force: true });
  }
}

async function readManifest(entries: AsyncGenerator<TarEntry>): Promise<z.infer<typeof Manifest>> {
  const { value: entry } = await entries.next();
  if (entry?.name !== MANIFEST || entry.kind !== 'file' || entry.size > MOST_MANIFEST_BYTES)
    throw refused('It is no snapshot of ext.local.');
  const chunks: Uint8Array[] = [];
  for await (const chunk of entry.body) chunks.push(chunk);
  try {
    return Manifest.parse(JSON.parse(Buffer.concat(chunks).toString('utf8')));
  } catch {
    throw refused('It does not say what is in it.');
  }
}

/** Writes the body to a file and returns its digest. */
async function stored(path: string, body: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256');
  const file = await open(path, 'wx', 0o600);
  try {
    for await (const chunk of body) {
      hash.update(chunk);
      await file.write(chunk);
    }
  } finally {
    await file.close();
  }
  return `sha256:${hash.digest('hex')}`;
}

/** Returns the layer of a digest; an existing one is used again. */
async function layerFrom(parts: ArchiveParts, archive: string, content: LayerContent): Promise<string> {
  const { layers, digests, engine } = parts;
  const known = layers.find((layer) => digests.known(layer)?.digest === content.digest);
  if (known !== null) return known;
  const to = layers.next();
  try {
    const bounds = { entries: MOST_ENTRIES, bytes: MOST_BYTES, marks: 1 };
    await engine.call('unpack', { from: archive, to, ...bounds }).catch((error: unknown) => {
      throw refused(`A layer cannot be unpacked: ${UNPACK_WORDS.get(messageOf(error)) ?? messageOf(error)}.`);
    });
    // Flushes first: only a layer that survives a power cut gets its content recorded.
    await engine.flushed();
  } catch (error) {
    layers.settled(to);
    throw error;
  }
  await digests.keep(to, content);
  return to;
}

const messageOf = (error: unknown): string => failed(error).detail;

async function* once(data: Uint8Array): AsyncGenerator<Uint8Array> {
  yield data;
}
