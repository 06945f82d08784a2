/**
 * How long a create takes, by how many run at once: a backend that is quickest alone is often not the quickest in a burst. A slow
 * answer counts at once, a quick one only little by little, so that trouble shows before recovery.
 */

/** The upper ends of the load classes, in creates in flight including one's own. */
const LOAD_CLASSES = [1, 4, 16, 64, Number.POSITIVE_INFINITY] as const;

const MEMORY_MS = 60_000;
/** Every quick answer counts this much at least, however fast they follow one another. */
const LEAST_WEIGHT = 0.1;

interface Estimate {
  readonly ms: number;
  readonly at: number;
}

/** The latency that is assumed until one was measured. */
export interface LatencyPrior {
  readonly aloneMs: number;
  readonly burstMs: number;
}

export interface ExpectedWait {
  readonly ms: number;
  readonly measured: boolean;
}

export class PeakLatency {
  readonly #estimates: (Estimate | null)[] = LOAD_CLASSES.map(() => null);

  observe(ms: number, inFlight: number, at: number): void {
    const index = classOf(inFlight);
    const known = this.#estimates[index];
    if (!known || ms >= known.ms) {
      this.#estimates[index] = { ms, at };
      return;
    }
    const weight = Math.max(LEAST_WEIGHT, 1 - Math.exp(-Math.max(0, at - known.at) / MEMORY_MS));
    this.#estimates[index] = { ms: known.ms + (ms - known.ms) * weight, at: Math.max(at, known.at) };
  }

  /**
   * Returns the expected wait of the `inFlight`-th create at once. The nearest measured load stands for one that was not
   * measured.
   */
  expected(inFlight: number, prior: LatencyPrior): ExpectedWait {
    const wanted = classOf(inFlight);
    for (let distance = 0; distance < LOAD_CLASSES.length; distance += 1) {
      const near = this.#estimates[wanted - distance] ?? this.#estimates[wanted + distance];
      if (near) return { ms: near.ms, measured: true };
    }
    return { ms: inFlight <= LOAD_CLASSES[1] ? prior.aloneMs : prior.burstMs, measured: false };
  }
}

function classOf(inFlight: number): number {
  return LOAD_CLASSES.findIndex((end) => inFlight <= end);
}
