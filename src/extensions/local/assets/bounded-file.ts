/** Writes streams into files, with bounds: an untrusted stream may be endless, or decompress to an endless one. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { SandboxerError } from '../../../contract/errors/errors.ts';

export interface Written {
  /** Digest of the input. */
  readonly digest: string;
  /** Digest of the file: the same, unless the input was compressed. */
  readonly plainDigest: string;
  readonly bytes: number;
}

export function notAnImage(detail: string, remedy?: string): SandboxerError {
  return new SandboxerError('SBX_INVALID_REQUEST', detail, {
    backend: 'ext.local',
    remedy:
      remedy ??
      'Send the tar archive of a root file system, an OCI layout or a "docker save" archive; gzip and zstd are understood.',
  });
}

export function tooLarge(most: number): SandboxerError {
  return new SandboxerError(
    'SBX_PAYLOAD_TOO_LARGE',
    `The image is larger than ${most} bytes when unpacked.`,
    {
      backend: 'ext.local',
      remedy: 'Import a smaller image, or have the limit raised.',
    },
  );
}

/** Passes all chunks on, counted and hashed. */
class Gauge extends Transform {
  readonly #hash = createHash('sha256');
  readonly #most: number;
  bytes = 0;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  override _transform(chunk: Buffer, _encoding: string, done: (error: Error | null, data?: Buffer) => void) {
    this.bytes += chunk.length;
    if (this.bytes > this.#most) return done(tooLarge(this.#most));
    this.#hash.update(chunk);
    done(null, chunk);
  }

  get digest(): string {
    return `sha256:${this.#hash.copy().digest('hex')}`;
  }
}

const GZIP = Buffer.from([0x1f, 0x8b]);
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** Compressions that are recognised by their first bytes, but not supported. */
const UNKNOWN: readonly (readonly [name: string, start: Buffer])[] = [
  ['xz', Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00])],
  ['bzip2', Buffer.from('BZh')],
  ['lzip', Buffer.from('LZIP')],
  ['lz4', Buffer.from([0x04, 0x22, 0x4d, 0x18])],
];
const LONGEST_START = 6;

function decoderFor(start: Buffer): Transform | null {
  for (const [name, bytes] of UNKNOWN) {
    if (start.subarray(0, bytes.length).equals(bytes))
      throw notAnImage(
        `It is compressed with ${name}, which is not understood.`,
        `Decompress it first ("${name} -dc FILE | sandboxer images import -"), or compress it with gzip or zstd.`,
      );
  }
  if (start.subarray(0, 2).equals(GZIP)) return createGunzip();
  if (start.subarray(0, 4).equals(ZSTD)) return createZstdDecompress();
  return null;
}

async function* following(first: Buffer, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}

/** Writes a stream to a file, decompressed. */
export async function writePlain(
  source: AsyncIterable<Uint8Array>,
  path: string,
  mostBytes: number,
  signal?: AbortSignal,
): Promise<Written> {
  const chunks = source[Symbol.asyncIterator]();
  let start: Buffer = Buffer.alloc(0);
  while (start.length < LONGEST_START) {
    const next = await chunks.next();
    if (next.done === true) break;
    start = Buffer.concat([start, next.value]);
  }
  const incoming = new Gauge(mostBytes);
  const plain = new Gauge(mostBytes);
  const decoder = decoderFor(start);
  const from = Readable.from(following(start, chunks), { objectMode: false });
  const to = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  const options = signal === undefined ? {} : { signal };
  try {
    if (decoder === null) await pipeline(from, incoming, plain, to, options);
    else await pipeline(from, incoming, decoder, plain, to, options);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (/^(?:Z_|ZSTD_|ERR_ZSTD)/.test(code)) throw notAnImage('The compression of the image is broken.');
    throw error;
  }
  return { digest: incoming.digest, plainDigest: plain.digest, bytes: plain.bytes };
}

/** Returns a part of a file as a stream. */
export function partOf(path: string, offset: number, size: number): AsyncIterable<Uint8Array> {
  if (size === 0) return Readable.from([]);
  return createReadStream(path, { start: offset, end: offset + size - 1 });
}

export async function readPart(path: string, offset: number, size: number): Promise<Buffer> {
  const file = await open(path, 'r');
  try {
    const buffer = Buffer.alloc(size);
    const { bytesRead } = await file.read(buffer, 0, size, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
