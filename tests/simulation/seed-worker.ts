import { parentPort, workerData } from 'node:worker_threads';
import { Simulation } from './simulation.ts';

/** Runs every seed that it is given and reports each. */

export interface SeedWork {
  readonly first: number;
  readonly count: number;
  /** This worker takes every `stride`-th seed. */
  readonly stride: number;
}

export interface SeedReport {
  readonly seed: number;
  readonly violation: { readonly invariant: string; readonly detail: string } | null;
  readonly operations: number;
  readonly steps: number;
  readonly crashes: number;
  readonly virtualMs: number;
  readonly digest: string;
  readonly cells: readonly (readonly [string, number])[];
}

// Stack traces of expected errors are most of what they cost; a failing seed is looked at with --trace.
Error.stackTraceLimit = 0;

const port = parentPort;
if (port === null) throw new Error('This is a worker of run.ts.');
const { first, count, stride } = workerData as SeedWork;

process.on('unhandledRejection', (error) => {
  throw error;
});

for (let seed = first; seed < first + count; seed += stride) {
  const { violation, cells, ...rest } = await new Simulation(seed).run();
  const report: SeedReport = {
    ...rest,
    violation: violation && { invariant: violation.invariant, detail: violation.message },
    cells: [...cells],
  };
  port.postMessage(report);
}
