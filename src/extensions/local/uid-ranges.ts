/** Ranges of 65,536 host ids that nobody else uses: systemd leaves 1879048192 … 2147352575 free, and so does useradd. */
export const RANGE_SIZE = 65_536;
/** Files at rest belong to this one, whoever wrote them. */
export const STORAGE_RANGE = 1_879_048_192;
const RANGES = 4_094;

/** Hands out ranges, each to one sandbox at a time. What is used is read from the records at start. */
export class UidRanges {
  readonly #used = new Set<number>();
  readonly #free: number[] = [];
  #next: number;

  constructor(used: Iterable<number>) {
    for (const first of used) this.#used.add(first);
    this.#next = 1;
  }

  /** The most recently freed first: the spawner has its user namespace at hand. `null` when all are taken. */
  take(): number | null {
    let first = this.#free.pop();
    while (first === undefined || this.#used.has(first)) {
      if (this.#next >= RANGES) {
        first = this.#free.pop();
        if (first === undefined) return null;
        continue;
      }
      first = STORAGE_RANGE + this.#next++ * RANGE_SIZE;
    }
    this.#used.add(first);
    return first;
  }

  give(first: number): void {
    if (this.#used.delete(first)) this.#free.push(first);
  }
}
