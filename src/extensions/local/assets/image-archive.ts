/** Recognises the format of an archive: an OCI layout, the output of `docker save`, or a root file system. */
import { arch } from 'node:os';
import { z } from 'zod';
import type { ImageConfig } from '../../../contract/assets/image.ts';
import { notAnImage, readPart } from './bounded-file.ts';
import type { TarPart } from './tar-index.ts';

export interface ArchiveLayer {
  readonly part: TarPart;
  /** Digest of the bytes in the archive; `null` where the format has none. */
  readonly digest: string | null;
  /** Digest of the decompressed tar. */
  readonly plainDigest: string;
}

export interface ImageArchive {
  readonly source: 'oci' | 'docker';
  readonly digest: string;
  readonly architecture: string;
  readonly config: ImageConfig;
  /** Layers, lowest first. */
  readonly layers: readonly ArchiveLayer[];
}

type Parts = ReadonlyMap<string, TarPart>;

const Digest = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'Only sha256 digests are understood.');
const Descriptor = z.object({
  mediaType: z.string().optional(),
  digest: Digest,
  size: z.number().int().nonnegative().optional(),
  platform: z.object({ architecture: z.string(), os: z.string() }).optional(),
});
const Index = z.object({ manifests: z.array(Descriptor).min(1).max(256) });
const Manifest = z.object({ config: Descriptor, layers: z.array(Descriptor).min(1).max(512) });
const Config = z.object({
  architecture: z.string().max(64).default('unknown'),
  os: z.string().max(64).default('linux'),
  config: z
    .object({
      Env: z.array(z.string().max(32_768)).max(1024).nullish(),
      User: z.string().max(256).nullish(),
      WorkingDir: z.string().max(4096).nullish(),
      Entrypoint: z.array(z.string().max(32_768)).max(256).nullish(),
      Cmd: z.array(z.string().max(32_768)).max(256).nullish(),
    })
    .nullish(),
  rootfs: z.object({ diff_ids: z.array(Digest).max(512) }),
});
const DockerManifest = z
  .array(z.object({ Config: z.string().max(512), Layers: z.array(z.string().max(512)).min(1).max(512) }))
  .min(1);

const MOST_DOCUMENT_BYTES = 8 << 20;
/** Names of processors in Go, and so in every image. */
const GO_NAMES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
export const OWN_ARCHITECTURE = GO_NAMES[arch()] ?? arch();

export const NO_CONFIG: ImageConfig = { env: {}, user: null, workdir: null, entrypoint: [], cmd: [] };

function parse<T>(schema: z.ZodType<T>, bytes: Buffer, what: string): T {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw notAnImage(`Its ${what} is not JSON.`);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw notAnImage(`Its ${what} is not as it must be: ${parsed.error.issues[0]?.message ?? ''}`);
}

function configOf({ config }: z.infer<typeof Config>): ImageConfig {
  const pairs = (config?.Env ?? []).flatMap((line) => {
    const at = line.indexOf('=');
    const name = line.slice(0, at);
    return at > 0 && !/[\0]/.test(line) ? [[name, line.slice(at + 1)] as const] : [];
  });
  const { User, WorkingDir, Entrypoint, Cmd } = config ?? {};
  return {
    env: Object.fromEntries(pairs),
    user: User || null,
    workdir: WorkingDir?.startsWith('/') ? WorkingDir : null,
    entrypoint: Entrypoint ?? [],
    cmd: Cmd ?? [],
  };
}

class Blobs {
  readonly #path: string;
  readonly #parts: Parts;
  readonly #digestOf: (bytes: Buffer) => string;

  constructor(path: string, parts: Parts, digestOf: (bytes: Buffer) => string) {
    this.#path = path;
    this.#parts = parts;
    this.#digestOf = digestOf;
  }

  part(name: string, what: string): TarPart {
    const part = this.#parts.get(name);
    if (part === undefined) throw notAnImage(`The archive lacks ${what} (${name}).`);
    return part;
  }

  blob(digest: string, what: string): TarPart {
    return this.part(`blobs/sha256/${digest.slice(7)}`, what);
  }

  async document(part: TarPart, what: string, digest: string | null): Promise<Buffer> {
    if (part.size > MOST_DOCUMENT_BYTES) throw notAnImage(`Its ${what} is too large.`);
    const bytes = await readPart(this.#path, part.offset, part.size);
    if (digest !== null && this.#digestOf(bytes) !== digest)
      throw notAnImage(`Its ${what} is not what its digest says.`);
    return bytes;
  }
}

async function readOci(blobs: Blobs): Promise<ImageArchive> {
  const index = await blobs.document(blobs.part('index.json', 'its index'), 'index', null);
  let { manifests } = parse(Index, index, 'index');
  for (let depth = 0; depth < 4; depth += 1) {
    const fits = manifests.filter(
      ({ platform }) =>
        platform === undefined || (platform.os === 'linux' && platform.architecture === OWN_ARCHITECTURE),
    );
    const [chosen] = fits;
    if (chosen === undefined) {
      const offered = manifests.map(({ platform }) => `${platform?.os}/${platform?.architecture}`).join(', ');
      throw notAnImage(`It has nothing for linux/${OWN_ARCHITECTURE}, but for ${offered}.`);
    }
    if (fits.length > 1 && depth === 0)
      throw notAnImage(`The layout has ${fits.length} images. Send one with a single image.`);
    const part = blobs.blob(chosen.digest, 'its manifest');
    const bytes = await blobs.document(part, 'manifest', chosen.digest);
    const nested = Index.safeParse(JSON.parse(bytes.toString('utf8')));
    if (nested.success) {
      manifests = nested.data.manifests;
      continue;
    }
    const manifest = parse(Manifest, bytes, 'manifest');
    const config = parse(
      Config,
      await blobs.document(
        blobs.blob(manifest.config.digest, 'its configuration'),
        'configuration',
        manifest.config.digest,
      ),
      'configuration',
    );
    const { diff_ids } = config.rootfs;
    if (diff_ids.length !== manifest.layers.length)
      throw notAnImage('Its manifest and its configuration have different layers.');
    return {
      source: 'oci',
      digest: chosen.digest,
      architecture: config.architecture,
      config: configOf(config),
      layers: manifest.layers.map(({ digest }, at) => ({
        part: blobs.blob(digest, 'a layer'),
        digest,
        plainDigest: diff_ids[at] as string,
      })),
    };
  }
  throw notAnImage('Its indexes are nested too deep.');
}

async function readDocker(blobs: Blobs, digestOf: (bytes: Buffer) => string): Promise<ImageArchive> {
  const bytes = await blobs.document(blobs.part('manifest.json', 'its manifest'), 'manifest', null);
  const images = parse(DockerManifest, bytes, 'manifest');
  const [image] = images;
  if (image === undefined || images.length > 1)
    throw notAnImage(`The archive has ${images.length} images. Save one alone.`);
  const text = await blobs.document(blobs.part(image.Config, 'its configuration'), 'configuration', null);
  const config = parse(Config, text, 'configuration');
  const { diff_ids } = config.rootfs;
  if (diff_ids.length !== image.Layers.length)
    throw notAnImage('Its manifest and its configuration have different layers.');
  return {
    source: 'docker',
    digest: digestOf(text),
    architecture: config.architecture,
    config: configOf(config),
    layers: image.Layers.map((name, at) => ({
      part: blobs.part(name, 'a layer'),
      digest: null,
      plainDigest: diff_ids[at] as string,
    })),
  };
}

/** Reads the archive; returns `null` for that of a root file system. */
export async function readImageArchive(
  path: string,
  parts: Parts,
  digestOf: (bytes: Buffer) => string,
): Promise<ImageArchive | null> {
  const blobs = new Blobs(path, parts, digestOf);
  if (parts.has('oci-layout') && parts.has('index.json')) return await readOci(blobs);
  if (
    parts.has('manifest.json') &&
    [...parts.keys()].some((name) => name.endsWith('layer.tar') || name.startsWith('blobs/'))
  )
    return await readDocker(blobs, digestOf);
  return null;
}
