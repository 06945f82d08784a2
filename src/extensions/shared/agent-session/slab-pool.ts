/** Size of the first slab: enough for answers; most connections never carry more. */
const FIRST_BYTES = 16_384;
const SLAB_BYTES = 262_144;
/** Least part of a slab that is worth a read. */
const LEAST_PART = 4;
/** Most free slabs of a connection: as much as may be under way on a channel. */
const MOST_FREE = 4;

interface Slab {
  readonly bytes: Buffer;
  readonly pool: SlabPool;
  used: number;
  /** Pieces that are still being read. */
  lent: number;
}

const slabs = new WeakMap<ArrayBufferLike, Slab>();

/**
 * Memory that a socket reads into; large pieces of it become chunks of output without a copy. A slab whose pieces were all given
 * back is read into again: new memory for every read would make the garbage collector the most expensive part of a fast stream. A
 * piece that is never given back keeps its slab out of use, which is then collected as a whole.
 */
export class SlabPool {
  readonly #free: Slab[] = [];
  #current: Slab | null = null;
  #size = FIRST_BYTES;

  /** Returns the room for the next bytes. */
  room(): Buffer {
    const current = this.#current;
    if (current !== null && current.bytes.length - current.used >= current.bytes.length / LEAST_PART)
      return current.bytes.subarray(current.used);
    this.#current = this.#free.pop() ?? this.#newSlab();
    this.#current.used = 0;
    if (current !== null) this.#retire(current);
    return this.#current.bytes;
  }

  /** Returns the bytes that were read into the room. */
  filled(count: number): Buffer {
    const current = this.#current as Slab;
    const { bytes, used } = current;
    current.used += count;
    if (current.used === bytes.length) this.#size = SLAB_BYTES;
    return bytes.subarray(used, used + count);
  }

  returned(slab: Slab): void {
    if (slab !== this.#current) this.#retire(slab);
  }

  #retire(slab: Slab): void {
    const fits = slab.bytes.length === this.#size;
    if (fits && slab.lent === 0 && this.#free.length < MOST_FREE) this.#free.push(slab);
  }

  #newSlab(): Slab {
    const slab = { bytes: Buffer.allocUnsafeSlow(this.#size), pool: this, used: 0, lent: 0 };
    slabs.set(slab.bytes.buffer, slab);
    return slab;
  }
}

/** Keeps the piece unchanged until it is given back; does nothing for memory that is of no pool. */
export function lend(piece: Buffer): void {
  const slab = slabs.get(piece.buffer);
  if (slab !== undefined) slab.lent += 1;
}

/** Gives a piece back, once for each `lend`: it is not read any more. */
export function giveBack(piece: Buffer): void {
  const slab = slabs.get(piece.buffer);
  if (slab === undefined) return;
  slab.lent -= 1;
  if (slab.lent === 0) slab.pool.returned(slab);
}
