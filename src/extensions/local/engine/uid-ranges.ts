import { hash } from 'node:crypto';

/** Size of a range of host ids. Ranges lie in 1879048192 … 2147352575, which systemd leaves free, and so does useradd. */
export const RANGE_SIZE = 65_536;
/** Files at rest belong to this range, whichever sandbox wrote them. */
export const STORAGE_RANGE = 1_879_048_192;
const RANGES = 4_093;

/**
 * Gives each range to one sandbox at a time. Ranges in use are read from the records at start. Servers on one machine do not know
 * of each other: each begins at another place, derived from its name.
 */
export class UidRanges {
  readonly #used = new Set<number>();
  readonly #free: number[] = [];
  readonly #start: number;
  #begun = 0;

  constructor(used: Iterable<number>, name = '') {
    for (const first of used) this.#used.add(first);
    this.#start = Number.parseInt(hash('sha256', name).slice(0, 8), 16) % RANGES;
  }

  /** Takes the most recently freed range, whose user namespace the spawner still has. Returns `null` when all are taken. */
  take(): number | null {
    for (;;) {
      const first = this.#free.pop() ?? this.#fresh();
      if (first === null || !this.#used.has(first)) {
        if (first !== null) this.#used.add(first);
        return first;
      }
    }
  }

  give(first: number): void {
    if (this.#used.delete(first)) this.#free.push(first);
  }

  #fresh(): number | null {
    if (this.#begun === RANGES) return null;
    const at = 1 + ((this.#start + this.#begun++) % RANGES);
    return STORAGE_RANGE + at * RANGE_SIZE;
  }
}
