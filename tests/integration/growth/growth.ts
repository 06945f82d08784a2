/** How the work of a parser grows with its input. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

export interface Case {
  readonly name: string;
  /** Reads an input of about this many bytes (or items). What it throws is an answer like any other. */
  run(size: number): unknown;
}

export interface Sizes {
  /** The least of four, each twice the one before. */
  readonly least: number;
  /** Bytes of memory for each byte (or item) of the largest input. */
  readonly memory?: number;
}

const DOUBLINGS = 3;
/** Eight times the input may take so many times as long: linear is 8, n·log n about 9, quadratic 64. */
const MOST_TIMES = 24;
/** What is over sooner than this, at the largest size, is too short to be measured, and harms nobody. */
const NEGLIGIBLE_MS = 30;
const TRIES = 5;
const MEMORY_BASE = 48 * 1_048_576;

/** Processor time is counted in ticks of up to this. */
const TICK_MS = 10;

/** Milliseconds by the clock or by the processor time of this thread, whichever says less: others may use the machine, too. */
async function once(work: () => unknown): Promise<number> {
  const begun = performance.now();
  const before = process.threadCpuUsage();
  try {
    await work();
  } catch {
    // A refusal is an answer.
  }
  const { user, system } = process.threadCpuUsage(before);
  return Math.min(performance.now() - begun, (user + system) / 1000 + TICK_MS);
}

async function best(work: () => unknown, enough: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < TRIES && least > enough; attempt += 1)
    least = Math.min(least, await once(work));
  return least;
}

const used = () => {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

/** Why this case grows faster than its input, or `null`. */
export async function excess({ name, run }: Case, { least, memory = 512 }: Sizes): Promise<string | null> {
  const most = least * 2 ** DOUBLINGS;
  const room = MEMORY_BASE + memory * most;
  const before = used();
  let ms = await once(() => run(most));
  let grown = used() - before;
  if (grown > room) {
    collectGarbage();
    const again = used();
    await once(() => run(most));
    grown = used() - again;
  }
  if (grown > room) return `${name}: ${Math.round(grown / 1_048_576)} MiB for ${most}`;
  if (ms <= NEGLIGIBLE_MS) return null;
  const small = await best(() => run(least), 0);
  const bound = MOST_TIMES * Math.max(small, NEGLIGIBLE_MS / MOST_TIMES);
  if (ms > bound) ms = Math.min(ms, await best(() => run(most), bound));
  return ms > bound ? `${name}: ${small.toFixed(1)} ms for ${least}, ${ms.toFixed(1)} ms for ${most}` : null;
}

/** Those of the cases that grow faster than their input. */
export async function excesses(cases: readonly Case[], sizes: Sizes): Promise<string[]> {
  const found: string[] = [];
  for (const one of cases) {
    const why = await excess(one, sizes);
    if (why !== null) found.push(why);
  }
  return found;
}
