/** Images of this machine: each a record that names its layers; layers with the same content are stored once. */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { DebianRecipe, ImageSpec, ImportedImage, ProvisionSpec } from '../../../core/ports/extension.ts';
import type { Engine } from '../engine/engine.ts';
import { failed } from '../engine/failure.ts';
import { writeImageTop } from '../engine/skeleton.ts';
import { SpawnerError } from '../engine/spawner-client.ts';
import type { Layers } from '../state/layers.ts';
import type { Layout } from '../state/layout.ts';
import type { RootFs } from '../state/root-fs.ts';
import { RootFsShape, rootFsOf } from '../state/root-fs.ts';
import { writeLasting } from '../state/whole-file.ts';
import { notAnImage, partOf, tooLarge, writePlain } from './bounded-file.ts';
import { buildDebian } from './build-debian.ts';
import type { ImageArchive } from './image-archive.ts';
import { NO_CONFIG, OWN_ARCHITECTURE, readImageArchive } from './image-archive.ts';
import { indexTar } from './tar-index.ts';

const ImageRecord = z.strictObject({
  version: z.literal(1),
  imageId: z.string(),
  owner: z.string(),
  digest: z.string(),
  ...RootFsShape,
});

const MOST_ENTRIES = 1_000_000;
/** A longer chain makes every look-up slow: it is flattened into one layer at import. */
const MOST_LAYERS = 12;
const ABANDONED_MS = 24 * 3_600_000;

const sha256 = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Errors of the kernel for entries that contradict each other, or that no file system can hold. */
const CONTRADICTIONS = new Set([
  'Directory not empty',
  'File name too long',
  'Is a directory',
  'Not a directory',
  'Operation not permitted',
  'Too many levels of symbolic links',
  'Too many links',
]);

function explained(error: unknown, mostBytes: number): unknown {
  if (!(error instanceof SpawnerError)) return error;
  if (error.message === 'Bad message')
    return notAnImage(
      'A layer of it is not a tar archive that can be unpacked (cut off, or with sparse files).',
    );
  if (error.message === 'File too large') return tooLarge(mostBytes);
  if (error.message === 'No such file or directory')
    return notAnImage('A hard link in it leads to a file that is not there.');
  if (CONTRADICTIONS.has(error.message))
    return notAnImage(`An entry of it cannot be unpacked: ${error.message}.`);
  return failed(error);
}

interface ReceivedImage {
  readonly path: string;
  readonly plainDigest: string;
  readonly bytes: number;
  readonly signal: AbortSignal;
}

interface Unpacking {
  readonly mostBytes: number;
  readonly made: string[];
  readonly signal: AbortSignal;
}

interface NewLayer {
  readonly digest: string;
  readonly marks: boolean;
  readonly mostBytes: number;
  readonly made: string[];
}

export class ImageStore {
  readonly #layout: Layout;
  readonly #engine: Engine;
  readonly #layers: Layers;

  constructor(layout: Layout, engine: Engine, layers: Layers) {
    this.#layout = layout;
    this.#engine = engine;
    this.#layers = layers;
  }

  /** Returns the layers for a sandbox of this image; `null` when the image is not here. */
  rootFs(imageId: string, owner: string): RootFs | null {
    const record = this.#read(imageId);
    return record?.owner === owner ? rootFsOf(record) : null;
  }

  /** Returns the image that a sandbox starts from, `null` for the machine's own. Throws where it is not here. */
  of({ recipe, stamp }: Pick<ProvisionSpec, 'recipe' | 'stamp'>): RootFs | null {
    if (recipe.image === 'host') return null;
    const rootFs = recipe.keptImage && this.rootFs(recipe.keptImage.imageId, stamp.owner);
    if (rootFs) return rootFs;
    throw new SandboxerError('SBX_IMAGE_UNAVAILABLE', `The image ${recipe.image} is not on this machine.`, {
      backend: 'ext.local',
      creation: 'not_created',
      remedy: 'Import it: sandboxer images import FILE --name NAME.',
    });
  }

  async import(
    spec: ImageSpec,
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<ImportedImage> {
    await this.#engine.machinery();
    return await this.#staged(async (folder) => {
      const path = join(folder, 'upload.tar');
      const { plainDigest, bytes } = await writePlain(body, path, spec.maxBytes, signal);
      return await this.#keep(spec, { path, plainDigest, bytes, signal });
    });
  }

  /** Builds an image by Debian's own tool, from the package sources of this machine. */
  async build(spec: ImageSpec, recipe: DebianRecipe, signal: AbortSignal): Promise<ImportedImage> {
    await this.#engine.machinery();
    return await this.#staged(async (folder) => {
      const path = await buildDebian(recipe, folder, signal);
      const built = join(folder, 'plain.tar');
      const { plainDigest, bytes } = await writePlain(
        partOf(path, 0, Number.MAX_SAFE_INTEGER),
        built,
        spec.maxBytes,
        signal,
      );
      const image = await this.#keep(spec, { path: built, plainDigest, bytes, signal });
      return { ...image, source: 'build' };
    });
  }

  remove(imageId: string, owner: string): void {
    if (this.#read(imageId)?.owner !== owner) return;
    rmSync(this.#layout.image(imageId), { force: true });
  }

  async #keep(spec: ImageSpec, { path, plainDigest, bytes, signal }: ReceivedImage): Promise<ImportedImage> {
    const parts = await indexTar(path);
    const archive = await readImageArchive(path, parts, sha256);
    if (archive !== null && archive.architecture !== OWN_ARCHITECTURE && archive.architecture !== 'unknown')
      throw notAnImage(`It is for ${archive.architecture}; this machine is ${OWN_ARCHITECTURE}.`);
    const made: string[] = [];
    try {
      const found =
        archive === null
          ? {
              layers: [
                await this.#layer(path, {
                  digest: plainDigest,
                  marks: false,
                  mostBytes: spec.maxBytes,
                  made,
                }),
              ],
              bytes,
            }
          : await this.#layersOf(archive, path, { mostBytes: spec.maxBytes, made, signal });
      const config = archive?.config ?? NO_CONFIG;
      const layers = [await this.#top(config.workdir, made), ...(await this.#few(found.layers, made))];
      const digest = archive?.digest ?? plainDigest;
      const record = {
        version: 1 as const,
        imageId: spec.imageId,
        owner: spec.owner,
        digest,
        layers,
        host: [],
        process: { env: config.env, user: config.user ?? '0', cwd: config.workdir },
      };
      mkdirSync(this.#layout.images, { recursive: true, mode: 0o700 });
      await this.#engine.flushed();
      await writeLasting(this.#layout.image(spec.imageId), JSON.stringify(ImageRecord.parse(record)));
      return {
        digest,
        sizeBytes: found.bytes,
        architecture: archive?.architecture ?? OWN_ARCHITECTURE,
        source: archive?.source ?? 'tar',
        config,
      };
    } finally {
      for (const layer of made) this.#layers.settled(layer);
    }
  }

  /** Returns the layers, topmost first. */
  async #layersOf(archive: ImageArchive, path: string, { mostBytes, made, signal }: Unpacking) {
    const layers: string[] = [];
    let left = mostBytes;
    for (const { part, digest, plainDigest } of archive.layers) {
      const plain = `${path}.${layers.length}`;
      const written = await writePlain(partOf(path, part.offset, part.size), plain, left, signal);
      if ((digest !== null && written.digest !== digest) || written.plainDigest !== plainDigest)
        throw notAnImage('A layer of it is not what its digest says.');
      left -= written.bytes;
      layers.unshift(
        await this.#layer(plain, { digest: plainDigest, marks: true, mostBytes: left + written.bytes, made }),
      );
      rmSync(plain);
    }
    return { layers, bytes: mostBytes - left };
  }

  /** Stores a layer under the digest of its content; a stored one is used again. */
  async #layer(path: string, { digest, marks, mostBytes, made }: NewLayer): Promise<string> {
    const known = this.#layers.claimByContent(digest, marks);
    made.push(known.layer);
    if (known.exists) return known.layer;
    const temporary = `${dirname(known.layer)}.${randomBytes(4).toString('hex')}`;
    const absolute = join(this.#layout.base, temporary);
    mkdirSync(absolute, { mode: 0o700 });
    try {
      await this.#engine.call('unpack', {
        from: path.slice(this.#layout.base.length + 1),
        to: `${temporary}/fs`,
        entries: MOST_ENTRIES,
        bytes: mostBytes,
        marks: marks ? 1 : 0,
      });
      // Flushes first: after a power cut no layer may have content that differs from its name.
      await this.#engine.flushed();
      renameSync(absolute, dirname(join(this.#layout.base, known.layer)));
    } catch (error) {
      await this.#engine.call('discard', { path: temporary }).catch(() => {});
      if (!this.#layers.claimByContent(digest, marks).exists) throw explained(error, mostBytes);
    }
    return known.layer;
  }

  async #few(layers: readonly string[], made: string[]): Promise<readonly string[]> {
    if (layers.length <= MOST_LAYERS) return layers;
    const to = this.#layers.next();
    made.push(to);
    await this.#engine.call('flatten', { layers: layers.join(':'), host: '', to });
    return [to];
  }

  /** Makes the layer that every sandbox has above its image. */
  async #top(workdir: string | null, made: string[]): Promise<string> {
    const to = this.#layers.next();
    made.push(to);
    writeImageTop(join(this.#layout.base, to), this.#engine.sudoHelper, workdir);
    await this.#engine.call('own', { path: to });
    return to;
  }

  async #staged<T>(work: (folder: string) => Promise<T>): Promise<T> {
    const folder = join(this.#layout.incoming, randomBytes(8).toString('hex'));
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    try {
      return await work(folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  /** Removes uploads that a killed server left unfinished: none takes a day. */
  sweepIncoming(): void {
    if (!existsSync(this.#layout.incoming)) return;
    for (const name of readdirSync(this.#layout.incoming)) {
      const path = join(this.#layout.incoming, name);
      const old = (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) < Date.now() - ABANDONED_MS;
      if (old) rmSync(path, { recursive: true, force: true });
    }
  }

  #read(imageId: string) {
    try {
      return ImageRecord.parse(JSON.parse(readFileSync(this.#layout.image(imageId), 'utf8')));
    } catch {
      return null;
    }
  }
}
