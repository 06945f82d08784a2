import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { SeedReport, SeedWork } from './seed-worker.ts';

/** Runs `count` seeds from `first` on, on as many threads as there are cores. Stops early when `onReport` says so. */
export async function runSeeds(
  first: number,
  count: number,
  onReport: (report: SeedReport) => 'go on' | 'stop',
  workerFile: URL = new URL('./seed-worker.ts', import.meta.url),
): Promise<void> {
  const stride = Math.max(1, Math.min(availableParallelism(), count));
  const workers = Array.from({ length: stride }, (_, index) => {
    const work: SeedWork = { first: first + index, count: count - index, stride };
    return new Worker(workerFile, { workerData: work });
  });
  const stopAll = () => Promise.all(workers.map((worker) => worker.terminate()));
  const ends = workers.map(
    (worker) =>
      new Promise<void>((resolve, reject) => {
        worker.on('message', (report: SeedReport) => {
          if (onReport(report) === 'stop') void stopAll();
        });
        worker.on('error', reject);
        worker.on('exit', () => resolve());
      }),
  );
  try {
    await Promise.all(ends);
  } finally {
    await stopAll();
  }
}
