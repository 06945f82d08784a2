import { setTimeout as sleep } from 'node:timers/promises';
import type { Benchmark, Result } from '../harness.ts';
import { summarize } from '../harness.ts';
import { machineSpeed } from './bare-crun.ts';
import { ascending, dockerBaseline, skipped, timed, whyNot, withWorld } from './world.ts';

const REFILL_MS = 60;

async function firstResults(
  name: string,
  warm: number,
  rounds: number,
  baseline: number[] | null,
  note: string,
): Promise<Result[]> {
  return await withWorld({ warm }, 1, async (world) => {
    const details = { docker: note, ...(await machineSpeed(world, Math.min(rounds, 50))) };
    const samples: number[] = [];
    for (let n = 0; n < rounds; n++) {
      const id = await timed(n < 5 && rounds > 10 ? [] : samples, async () => {
        const made = await world.create();
        const { stdout } = await world.exec(made, ['/bin/echo', 'ready']);
        if (stdout !== 'ready\n') throw new Error(`it said ${stdout}`);
        return made;
      });
      await world.destroy(id);
      if (warm > 0) await sleep(REFILL_MS);
    }
    return [
      summarize({
        name,
        unit: 'ms',
        samples: ascending(samples),
        details,
        ...(baseline === null ? {} : { baseline }),
      }),
    ];
  });
}

export const benchmark: Benchmark = {
  name: 'local.tti',
  description:
    'create to the result of the first exec, cold and warm, against `docker run` (target p50 ≤ 12 ms cold, ≤ 5 ms warm, ratio ≤ 0.067)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.tti', reason);
    const docker = await dockerBaseline();
    let baseline: number[] | null;
    try {
      const run = ['run', '--rm', '--network', 'none', docker.image, 'true'];
      baseline = docker.runs(context.iterations(20), ...run);
    } finally {
      await docker.close();
    }
    const rounds = context.iterations(205);
    return [
      ...(await firstResults('local.tti', 0, rounds, baseline, docker.note)),
      ...(await firstResults('local.tti.warm', 4, rounds, baseline, docker.note)),
    ];
  },
};
