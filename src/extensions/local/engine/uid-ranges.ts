import { hash } from 'node:crypto';

/** Ranges of 65,536 host ids that nobody else uses: systemd leaves 1879048192 … 2147352575 free, and so does useradd. */
export const RANGE_SIZE = 65_536;
/** Files at rest belong to this one, whoever wrote them. */
export const STORAGE_RANGE = 1_879_048_192;
const RANGES = 4_093;

/**
 * Hands out ranges, each to one sandbox at a time. What is used is read from the records at start. Servers on one machine do
 * not know of each other: each begins somewhere else, by its name.
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

  /** The most recently freed first: the spawner has its user namespace at hand. `null` when all are taken. */
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
