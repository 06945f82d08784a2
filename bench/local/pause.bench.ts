import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';
import { ascending, skipped, timed, whyNot, withWorld } from './world.ts';

export const benchmark: Benchmark = {
  name: 'local.pause',
  description: 'pause and resume over HTTP of a busy sandbox (target ≤ 2 ms each)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.pause', reason);
    return await withWorld({}, 1, async (world) => {
      const id = await world.create();
      const pauses: number[] = [];
      const resumes: number[] = [];
      for (let n = 0; n < context.iterations(200); n++) {
        await timed(pauses, () => world.client.expect(200, 'POST', `/v1/sandboxes/${id}/pause`, {}));
        await timed(resumes, () => world.client.expect(200, 'POST', `/v1/sandboxes/${id}/resume`, {}));
      }
      return [
        summarize({ name: 'local.pause', unit: 'ms', samples: ascending(pauses) }),
        summarize({ name: 'local.pause.resume', unit: 'ms', samples: ascending(resumes) }),
      ];
    });
  },
};
