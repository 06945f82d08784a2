import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';
import { bareCrun } from './bare-crun.ts';
import { ascending, skipped, timed, whyNot, withWorld } from './world.ts';

export const benchmark: Benchmark = {
  name: 'local.create',
  description:
    'POST /v1/sandboxes to ready, cold, durable, limits on, against bare `crun run … true` (target p50 ≤ 10 ms, p99 ≤ 30 ms, ratio ≤ 1.8)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.create', reason);
    return await withWorld({}, 1, async (world) => {
      const samples: number[] = [];
      const life = async (into: number[]) => world.destroy(await timed(into, () => world.create()));
      for (let n = 0; n < context.iterations(20); n++) await life([]);
      // The first bundle is skipped: the runtime still had to compile its filter.
      const keeper = await world.create();
      const bare = bareCrun(world);
      const baseline: number[] = [];
      // In turns, so that a machine that slows down slows both.
      for (let round = 0; round < 4; round++) {
        baseline.push(...(await bare.times(context.iterations(50))));
        for (let n = 0; n < context.iterations(75); n++) await life(samples);
      }
      await world.destroy(keeper);
      return [
        summarize({
          name: 'local.create',
          unit: 'ms',
          samples: ascending(samples),
          baseline: ascending(baseline),
        }),
      ];
    });
  },
};
