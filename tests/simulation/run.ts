/**
 * The simulation level of `npm test`, and what a failing seed is replayed with:
 * run.ts [--seeds N] [--from N] [--keep-going] [--freeze] | --seed N [--trace] | --mutations
 */
import { parseArgs } from 'node:util';
import { freeze, printCoverage, unvisited } from './coverage-report.ts';
import { runMutations } from './run-mutations.ts';
import { runSeeds } from './run-seeds.ts';
import { Simulation } from './simulation.ts';

const FULL_RUN = 5_000;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    mutations: { type: 'boolean', default: false },
    freeze: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
  },
});

async function replay(seed: number): Promise<boolean> {
  Error.stackTraceLimit = 30;
  const result = await new Simulation(seed, values.trace ? (line) => console.log(line) : null).run();
  const { violation } = result;
  console.log(
    `seed ${seed}: ${result.operations} operations, ${result.steps} steps, digest ${result.digest}`,
  );
  if (violation) console.log(`${violation.invariant}: ${violation.message}`);
  return violation === null;
}

/** A seed is all there is: run twice, it does the same to the last step. */
async function isDeterministic(): Promise<boolean> {
  for (const seed of [1, 2, 3]) {
    const first = await new Simulation(seed).run();
    const second = await new Simulation(seed).run();
    if (first.digest === second.digest && first.steps === second.steps) continue;
    console.log(`seed ${seed} is not deterministic: ${first.digest} and ${second.digest}`);
    return false;
  }
  return true;
}

async function runMany(first: number, count: number): Promise<boolean> {
  const startedAt = performance.now();
  const cells = new Map<string, number>();
  const failures = new Map<string, { seed: number; detail: string; count: number }>();
  const totals = { seeds: 0, operations: 0, steps: 0, crashes: 0, virtualMs: 0 };
  await runSeeds(first, count, (report) => {
    totals.seeds += 1;
    totals.operations += report.operations;
    totals.steps += report.steps;
    totals.crashes += report.crashes;
    totals.virtualMs += report.virtualMs;
    for (const [cell, visits] of report.cells) cells.set(cell, (cells.get(cell) ?? 0) + visits);
    const { violation, seed } = report;
    if (violation === null) return 'go on';
    const known = failures.get(violation.invariant);
    if (known === undefined) failures.set(violation.invariant, { seed, detail: violation.detail, count: 1 });
    else known.count += 1;
    return values['keep-going'] ? 'go on' : 'stop';
  });
  const seconds = (performance.now() - startedAt) / 1000;
  const per = (n: number) => Math.round(n / seconds).toLocaleString('en');
  console.log(
    `${totals.seeds} seeds, ${totals.operations} operations, ${totals.steps} steps, ${totals.crashes} crashes, ` +
      `${(totals.virtualMs / 3_600_000).toFixed(1)} h of simulated time in ${seconds.toFixed(1)} s: ` +
      `${(totals.seeds / seconds).toFixed(1)} seeds/s, ${per(totals.operations)} operations/s, ${per(totals.steps)} steps/s`,
  );
  for (const [invariant, { seed, detail, count: times }] of failures) {
    console.log(`\n${invariant} is broken (${times}×): ${detail}`);
    console.log(`  node tests/simulation/run.ts --seed ${seed} --trace`);
  }
  printCoverage(cells);
  if (values.freeze && failures.size === 0) freeze(cells, `${first}–${first + count - 1}`);
  const idle = ![...cells.keys()].some((cell) => cell.startsWith('ready|'));
  if (idle) console.log('\nno sandbox became ready: nothing was tested');
  const missing = count >= FULL_RUN && failures.size === 0 ? unvisited(cells) : [];
  if (missing.length > 0) console.log(`\nreachable, and not visited:\n  ${missing.join('\n  ')}`);
  return failures.size === 0 && missing.length === 0 && !idle;
}

async function main(): Promise<boolean> {
  if (values.seed !== undefined) return replay(Number(values.seed));
  if (values.mutations) return runMutations();
  if (!(await isDeterministic())) return false;
  const passed = await runMany(Number(values.from), Number(values.seeds ?? FULL_RUN));
  if (!passed || values.seeds !== undefined) return passed;
  return runMutations();
}

process.exitCode = (await main()) ? 0 : 1;
