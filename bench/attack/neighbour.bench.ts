import { setTimeout as sleep } from 'node:timers/promises';
import type { Benchmark, BenchmarkContext, Result } from '../harness.ts';
import { percentile, summarize } from '../harness.ts';
import { ATTACKS } from './attacks.ts';
import type { AttackWorld } from './world.ts';
import { begin, openAttackWorld } from './world.ts';

const RUNS = 3;
const RUN_MS = 1_500;
const PAUSE_MS = 4;
const TIMES_IDLE = 4;
const LEAST_BOUND_MS = 50;
const MOST_RISE_MB = 256;

interface Run {
  /** Milliseconds, ascending. */
  readonly samples: readonly number[];
  readonly p99: number;
  readonly rise: number;
  /** Counts of the answers to the attack, by status. */
  readonly answers: string;
}

async function measure(world: AttackWorld, ms: number): Promise<Run> {
  const samples: number[] = [];
  const before = world.resident();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, world.resident());
  }, 50);
  const until = performance.now() + ms;
  while (performance.now() < until) {
    samples.push(await world.exec());
    await sleep(PAUSE_MS);
  }
  clearInterval(watch);
  samples.sort((a, b) => a - b);
  return {
    samples,
    p99: percentile(samples, 99),
    rise: Math.max(most, world.resident()) - before,
    answers: '',
  };
}

const byP99 = (runs: readonly Run[]) =>
  [...runs].sort((a, b) => a.p99 - b.p99)[Math.floor(runs.length / 2)] as Run;

async function underAttack(world: AttackWorld, name: string, ms: number): Promise<Run> {
  const before = world.resident();
  const end = await begin(name, world.target);
  let seen: Run | null = null;
  let answers = '';
  try {
    seen = await measure(world, ms);
  } finally {
    answers = await end();
  }
  await sleep(Math.min(ms, 200));
  return { ...seen, rise: Math.max(seen.rise, world.resident() - before), answers };
}

async function* run(context: BenchmarkContext): AsyncGenerator<Result> {
  const world = await openAttackWorld();
  const [runs, ms] = context.smoke ? [1, 150] : [RUNS, RUN_MS];
  const row = (name: string, chosen: Run, rises: readonly number[], bound: number | null) =>
    summarize({
      name: `attack.neighbour.${name}`,
      unit: 'ms',
      samples: chosen.samples,
      details: {
        bound_ms: bound === null ? null : Math.round(bound),
        answers: chosen.answers,
        rss_rise_mb: Math.round(Math.max(...rises)),
        holds: bound === null ? null : chosen.p99 <= bound && Math.max(...rises) <= MOST_RISE_MB,
      },
    });
  try {
    await measure(world, ms);
    const idle: Run[] = [];
    for (let at = 0; at < runs; at += 1) idle.push(await measure(world, ms));
    const quiet = byP99(idle);
    yield row(
      'idle',
      quiet,
      idle.map(({ rise }) => rise),
      null,
    );
    const bound = Math.max(TIMES_IDLE * quiet.p99, LEAST_BOUND_MS);
    for (const name of Object.keys(ATTACKS)) {
      const seen: Run[] = [];
      for (let at = 0; at < runs; at += 1) seen.push(await underAttack(world, name, ms));
      yield row(
        name,
        byP99(seen),
        seen.map(({ rise }) => rise),
        bound,
      );
    }
  } finally {
    await world.close();
  }
}

export const benchmark: Benchmark = {
  name: 'attack.neighbour',
  description:
    'exec of one tenant while another attacks (target p99 ≤ 4 × idle or 50 ms, the larger; server +256 MB at most)',
  run,
};
