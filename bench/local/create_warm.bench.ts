import { setTimeout as sleep } from 'node:timers/promises';
import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';
import { machineSpeed } from './bare-crun.ts';
import { ascending, skipped, timed, whyNot, withWorld } from './world.ts';

/** Wait until the pool is full again: the claim is measured. */
const REFILL_MS = 60;

export const benchmark: Benchmark = {
  name: 'local.create_warm',
  description: 'POST /v1/sandboxes to ready from the warm pool (target p50 ≤ 4 ms)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.create_warm', reason);
    return await withWorld({ warm: 4 }, 1, async (world) => {
      const details = await machineSpeed(world, context.iterations(50));
      const samples: number[] = [];
      for (let n = 0; n < context.iterations(220); n++) {
        const into = n < 20 && !context.smoke ? [] : samples;
        const id = await timed(into, () => world.create());
        await world.destroy(id);
        await sleep(REFILL_MS);
      }
      return [
        summarize({
          name: 'local.create_warm',
          unit: 'ms',
          samples: ascending(samples),
          details,
        }),
      ];
    });
  },
};
