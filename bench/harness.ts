/** Definition of a benchmark, and of the numbers computed from its samples. */

export interface Benchmark {
  /** `<area>.<name>`, the same as its file: bench/control/create.bench.ts is "control.create". */
  name: string;
  description: string;
  run(context: BenchmarkContext): AsyncIterable<Result> | Promise<Result[]>;
}

export interface BenchmarkContext {
  /** True where only the benchmark itself is under test; its numbers then mean nothing. */
  smoke: boolean;
  /** Returns the number of iterations: `wanted`, or a handful in a smoke run. */
  iterations(wanted: number): number;
}

export interface Result {
  name: string;
  unit: string;
  n: number;
  p50: number;
  p95: number;
  p99: number;
  min: number;
  max: number;
  /** Median of the same work done the plain way, measured in the same run; null when there is none. */
  baseline: number | null;
  /** Ratio p50 / baseline. */
  ratio: number | null;
  /** Further facts for a reader, such as concurrency or size. */
  [detail: string]: string | number | boolean | null;
}

const SMOKE_ITERATIONS = 3;

export function createContext(smoke: boolean): BenchmarkContext {
  return { smoke, iterations: (wanted) => (smoke ? Math.min(wanted, SMOKE_ITERATIONS) : wanted) };
}

/** Runs `work` `warmup` times unmeasured, then `n` times one after another. Returns milliseconds, ascending. */
export async function measure(n: number, warmup: number, work: () => unknown): Promise<number[]> {
  for (let i = 0; i < warmup; i++) await work();
  const samples: number[] = [];
  for (let i = 0; i < n; i++) {
    const startedAt = performance.now();
    await work();
    samples.push(performance.now() - startedAt);
  }
  return samples.sort(ascending);
}

export interface RateOptions {
  rounds: number;
  operationsPerRound: number;
  /** Number of operations under way at a time. */
  concurrency: number;
}

/** Operations per second of each round, ascending. */
export async function rate(options: RateOptions, work: () => unknown): Promise<number[]> {
  const { rounds, operationsPerRound, concurrency } = options;
  const samples: number[] = [];
  for (let round = 0; round < rounds; round++) {
    let left = operationsPerRound;
    const lane = async () => {
      while (left-- > 0) await work();
    };
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: concurrency }, lane));
    samples.push(operationsPerRound / ((performance.now() - startedAt) / 1000));
  }
  return samples.sort(ascending);
}

/** The nearest-rank percentile of ascending samples: the least sample that at least `percent` % do not exceed. */
export function percentile(sorted: readonly number[], percent: number): number {
  if (!(percent > 0 && percent <= 100)) throw new RangeError(`percent must be in (0, 100], got ${percent}`);
  const value = sorted[Math.ceil((percent / 100) * sorted.length) - 1];
  if (value === undefined) throw new RangeError('no samples');
  return value;
}

export interface Summary {
  name: string;
  unit: string;
  /** Samples, ascending. */
  samples: readonly number[];
  /** Samples of the baseline, ascending, in the same unit. */
  baseline?: readonly number[];
  details?: Record<string, string | number | boolean | null>;
}

export function summarize({ name, unit, samples, baseline, details }: Summary): Result {
  const p50 = percentile(samples, 50);
  const reference = baseline ? percentile(baseline, 50) : null;
  return {
    name,
    unit,
    n: samples.length,
    p50: rounded(p50),
    p95: rounded(percentile(samples, 95)),
    p99: rounded(percentile(samples, 99)),
    min: rounded(samples[0] ?? p50),
    max: rounded(samples.at(-1) ?? p50),
    ...details,
    baseline: reference === null ? null : rounded(reference),
    ratio: reference === null || reference === 0 ? null : rounded(p50 / reference),
  };
}

const ascending = (a: number, b: number) => a - b;

/** Rounds to four significant digits: more than a run repeats. */
const rounded = (value: number) => Number(value.toPrecision(4));
