import { nameOfBytes } from '../file-name.ts';
import { BLOCK, checksumOf, fieldAt, LONGEST_NAME, numberAt, TarError } from './format.ts';
import { eachPaxRecord, paxSize } from './pax-records.ts';

export interface HeaderOptions {
  /** Makes the error for an archive that cannot be used: a `TarError` unless given. */
  readonly refuse?: ((detail: string) => Error) | undefined;
  /** Turns the bytes of a name into text: `nameOfBytes`, which loses nothing, unless given. */
  readonly nameOf?: ((bytes: Buffer) => string) | undefined;
}

/** Header of an entry with the values of the extended headers before it. Only the size is validated. */
export interface RawHeader {
  readonly is: 'entry';
  readonly type: string;
  readonly name: string;
  readonly linkTarget: string;
  readonly size: number;
  /** `NaN` where the field is no number. */
  readonly mode: number;
  /** Seconds; `NaN` where the field is no number. */
  readonly modifiedAt: number;
  /** Name of a file that GNU tar stored with holes in the form of pax; else `null`. */
  readonly sparseName: string | null;
}

export type TarBlock =
  | RawHeader
  /** Extended header, whose body comes next. */
  | { readonly is: 'extension'; readonly type: string; readonly size: number }
  | { readonly is: 'end' };

/** Keys that are kept; others are dropped, since headers without an entry may be as long as the archive. */
const PAX_KEYS: ReadonlySet<string> = new Set(['linkpath', 'path', 'size', 'GNU.sparse.name']);
const EXTENSIONS = 'xgLK';

export function isTarHeader(block: Buffer): boolean {
  return numberAt(block, 148, 8) === checksumOf(block);
}

/**
 * Reads the headers of one archive in their order; the caller brings the bytes. Every reader of archives is built on it, so that
 * an archive means the same to all of them.
 */
export class HeaderReader {
  readonly #refuse: (detail: string) => Error;
  readonly #nameOf: (bytes: Buffer) => string;
  #extended = new Map<string, string>();

  constructor({ refuse = (detail) => new TarError(detail), nameOf = nameOfBytes }: HeaderOptions = {}) {
    this.#refuse = refuse;
    this.#nameOf = nameOf;
  }

  take(block: Buffer): TarBlock {
    // The end of an archive is a block of zeros (POSIX pax): an archive without it was cut off.
    if (block.every((byte) => byte === 0)) {
      if (this.#extended.size > 0) throw this.#refuse('The archive is cut off.');
      return { is: 'end' };
    }
    if (!isTarHeader(block)) throw this.#refuse('The archive is damaged.');
    const type = String.fromCharCode(block[156] as number);
    const isExtension = EXTENSIONS.includes(type);
    // Only the header of an entry has its size in a pax record.
    const given = isExtension ? undefined : this.#extended.get('size');
    const size = given === undefined ? numberAt(block, 124, 12) : paxSize(given);
    if (!Number.isSafeInteger(size) || size < 0) throw this.#refuse('The archive is damaged.');
    return isExtension ? { is: 'extension', type, size } : this.#entry(block, type, size);
  }

  /** Takes the body of the extended header that `take` returned last. */
  extend(type: string, body: Buffer): void {
    if (type === 'L') this.#extended.set('path', this.#text(body, 0, body.length));
    if (type === 'K') this.#extended.set('linkpath', this.#text(body, 0, body.length));
    if (type !== 'x') return;
    const isSound = eachPaxRecord(body, (key, value) => {
      if (PAX_KEYS.has(key)) this.#extended.set(key, this.#nameOf(value));
    });
    if (!isSound) throw this.#refuse('The archive is damaged.');
  }

  #entry(block: Buffer, type: string, size: number): RawHeader {
    const extended = this.#extended;
    this.#extended = new Map();
    // In archives of GNU tar ("ustar " without a zero byte) other fields lie in place of the prefix.
    const isPosix = fieldAt(block, 257, 6).toString('latin1') === 'ustar';
    const prefix = isPosix ? this.#text(block, 345, 155) : '';
    const plain = this.#text(block, 0, LONGEST_NAME);
    return {
      is: 'entry',
      type,
      name: extended.get('path') ?? (prefix === '' ? plain : `${prefix}/${plain}`),
      linkTarget: extended.get('linkpath') ?? this.#text(block, 157, LONGEST_NAME),
      size,
      mode: numberAt(block, 100, 8),
      modifiedAt: numberAt(block, 136, 12),
      sparseName: extended.get('GNU.sparse.name') ?? null,
    };
  }

  #text(block: Buffer, at: number, length: number): string {
    return this.#nameOf(fieldAt(block, at, length));
  }
}

/** Returns the bytes that an entry takes up in the archive behind its header. */
export function storedSize(size: number): number {
  return Math.ceil(size / BLOCK) * BLOCK;
}
