/** Fields of a tar block: ustar (POSIX), with the extensions of pax and GNU tar. */
export const BLOCK = 512;
export const LONGEST_NAME = 100;
export const LARGEST_OCTAL = 0o77777777777;
export const LONGEST_EXTENSION = 1_048_576;

export interface TarHeader {
  /** Relative path, with `/`; `.` is the top itself. */
  readonly name: string;
  readonly kind: 'file' | 'directory' | 'symlink';
  readonly mode: number;
  /** Size of the content; 0 for all kinds but files. */
  readonly size: number;
  readonly modifiedAtMs: number;
  readonly linkTarget: string | null;
}

export interface TarEntry extends TarHeader {
  /** Unread content is skipped when the next entry is asked for. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Unusable archive: damaged, cut off, or with an entry that is not allowed in it. */
export class TarError extends Error {
  override readonly name = 'TarError';
}

export function checksumOf(block: Buffer): number {
  let sum = 8 * 0x20;
  for (let at = 0; at < BLOCK; at += 1) if (at < 148 || at >= 156) sum += block[at] as number;
  return sum;
}

/** Returns the bytes of a field up to the first zero byte. */
export function fieldAt(block: Buffer, at: number, length: number): Buffer {
  const end = block.indexOf(0, at);
  return block.subarray(at, end === -1 || end > at + length ? at + length : end);
}

/** Parses octal digits, or the base-256 form of GNU tar. `NaN` for anything else. */
export function numberAt(block: Buffer, at: number, length: number): number {
  if (((block[at] as number) & 0x80) !== 0) {
    let value = (block[at] as number) & 0x7f;
    for (let index = at + 1; index < at + length; index += 1) value = value * 256 + (block[index] as number);
    return Number.isSafeInteger(value) ? value : Number.NaN;
  }
  const digits = fieldAt(block, at, length).toString('latin1').trim();
  if (!/^[0-7]*$/.test(digits)) return Number.NaN;
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}

export function tarPadding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}
