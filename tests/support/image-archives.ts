/** Archives as others make them, and as nobody should: written by hand, so that every field can lie. */
import { createHash } from 'node:crypto';

export interface TarItem {
  readonly name: string;
  readonly type?: string;
  readonly body?: string | Buffer;
  readonly mode?: number;
  readonly uid?: number;
  readonly link?: string;
  /** Where it is to differ from the body. */
  readonly size?: number;
  readonly pax?: Readonly<Record<string, string>>;
}

const BLOCK = 512;

function padded(body: Buffer): Buffer {
  return Buffer.concat([body, Buffer.alloc((BLOCK - (body.length % BLOCK)) % BLOCK)]);
}

function block(item: TarItem, size: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, width: number) =>
    header.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at, 'latin1');
  header.write(item.name.slice(0, 100), 0, 'utf8');
  octal(item.mode ?? (item.type === '5' ? 0o755 : 0o644), 100, 8);
  octal(item.uid ?? 0, 108, 8);
  octal(item.uid ?? 0, 116, 8);
  octal(size, 124, 12);
  octal(1_700_000_000, 136, 12);
  header.write(item.type ?? '0', 156, 'latin1');
  header.write((item.link ?? '').slice(0, 100), 157, 'utf8');
  header.write('ustar\x0000', 257, 'latin1');
  header.write('        ', 148, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}

function paxOf(records: Readonly<Record<string, string>>): Buffer {
  const lines = Object.entries(records).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`;
    let length = Buffer.byteLength(rest) + 1;
    while (String(length).length + Buffer.byteLength(rest) !== length) length += 1;
    return `${length}${rest}`;
  });
  const body = Buffer.from(lines.join(''));
  return Buffer.concat([block({ name: 'pax', type: 'x' }, body.length), padded(body)]);
}

export function tarOf(items: readonly TarItem[]): Buffer {
  const parts = items.flatMap((item) => {
    const body = Buffer.from(item.body ?? '');
    return [
      ...(item.pax === undefined ? [] : [paxOf(item.pax)]),
      block(item, item.size ?? body.length),
      padded(body),
    ];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

export const digestOf = (bytes: Buffer | string) =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

export interface ImageParts {
  /** Lowest first; the second member is what the archive has, if it is compressed. */
  readonly layers: readonly (readonly [plain: Buffer, packed?: Buffer])[];
  readonly config?: object;
  readonly architecture?: string;
}

function configText({ layers, config, architecture }: ImageParts): string {
  return JSON.stringify({
    architecture: architecture ?? (process.arch === 'x64' ? 'amd64' : process.arch),
    os: 'linux',
    config: config ?? {},
    rootfs: { type: 'layers', diff_ids: layers.map(([plain]) => digestOf(plain)) },
  });
}

/** An OCI layout as one tar. */
export function ociArchive(parts: ImageParts): { archive: Buffer; digest: string } {
  const blobs = new Map<string, Buffer>();
  const keep = (body: Buffer | string, mediaType: string) => {
    const bytes = Buffer.from(body as Buffer);
    blobs.set(digestOf(bytes).slice(7), bytes);
    return { mediaType, digest: digestOf(bytes), size: bytes.length };
  };
  const config = keep(configText(parts), 'application/vnd.oci.image.config.v1+json');
  const layers = parts.layers.map(([plain, packed]) =>
    keep(packed ?? plain, 'application/vnd.oci.image.layer.v1.tar+gzip'),
  );
  const manifest = keep(
    JSON.stringify({ schemaVersion: 2, config, layers }),
    'application/vnd.oci.image.manifest.v1+json',
  );
  const archive = tarOf([
    // The blobs first: nothing says in which order they come.
    ...[...blobs].map(([hex, body]) => ({ name: `blobs/sha256/${hex}`, body })),
    { name: './oci-layout', body: '{"imageLayoutVersion":"1.0.0"}' },
    { name: 'index.json', body: JSON.stringify({ schemaVersion: 2, manifests: [manifest] }) },
  ]);
  return { archive, digest: manifest.digest };
}

/** What `docker save` wrote before it learned of OCI. */
export function dockerArchive(parts: ImageParts): { archive: Buffer; digest: string } {
  const config = configText(parts);
  const digest = digestOf(config);
  const name = `${digest.slice(7)}.json`;
  const layers = parts.layers.map(([plain], at) => ({ name: `layer${at}/layer.tar`, body: plain }));
  const manifest = [{ Config: name, RepoTags: ['sample:1'], Layers: layers.map((layer) => layer.name) }];
  const archive = tarOf([
    { name, body: config },
    ...layers,
    { name: 'manifest.json', body: JSON.stringify(manifest) },
  ]);
  return { archive, digest };
}
