import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';
import { machineSpeed } from './bare-crun.ts';
import { ascending, skipped, timed, whyNot, withWorld } from './world.ts';

export const benchmark: Benchmark = {
  name: 'local.burst',
  description: '100 creates at once (target 100 % ready, p95 ≤ 1 s)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.burst', reason);
    const count = context.smoke ? 5 : 100;
    return await withWorld({}, count, async (world) => {
      const speed = await machineSpeed(world, context.iterations(50));
      const samples: number[] = [];
      for (let round = 0; round < (context.smoke ? 1 : 3); round++) {
        const ids = await Promise.all(
          Array.from({ length: count }, () => timed(samples, () => world.create())),
        );
        await Promise.all(ids.map((id) => world.destroy(id)));
      }
      return [
        summarize({
          name: 'local.burst',
          unit: 'ms',
          samples: ascending(samples),
          details: { at_once: count, ready: '100 %', ...speed },
        }),
      ];
    });
  },
};
