const MOST_SAMPLES = 128;
/** The fewest samples that show a tail. */
const LEAST_SAMPLES = 20;
const LATE = 0.95;

/** The spread of the times to ready, for the decision to start a second attempt. */
export interface LatencyShape {
  readonly p50Ms: number;
  readonly p95Ms: number;
  /** The average wait beyond `p95Ms` of the attempts that are not ready by then. */
  readonly tailMs: number;
}

/** Holds the latest times, oldest first. An attempt that was cut off counts with the time that it was waited for. */
export class LatencySamples {
  readonly #ms: number[] = [];
  /** The shape of the current samples; `undefined` until it is asked for. */
  #shape: LatencyShape | null | undefined;

  observe(ms: number): void {
    this.#shape = undefined;
    this.#ms.push(ms);
    if (this.#ms.length > MOST_SAMPLES) this.#ms.shift();
  }

  shape(): LatencyShape | null {
    this.#shape ??= this.#measured();
    return this.#shape;
  }

  #measured(): LatencyShape | null {
    const { length } = this.#ms;
    if (length < LEAST_SAMPLES) return null;
    const sorted = [...this.#ms].sort((one, other) => one - other);
    const late = Math.ceil(length * LATE) - 1;
    const p95Ms = sorted[late] as number;
    const tail = sorted.slice(late + 1);
    const sum = tail.reduce((total, ms) => total + (ms - p95Ms), 0);
    return {
      p50Ms: Math.round(sorted[Math.ceil(length / 2) - 1] as number),
      p95Ms: Math.round(p95Ms),
      tailMs: tail.length > 0 ? Math.round(sum / tail.length) : 0,
    };
  }
}
