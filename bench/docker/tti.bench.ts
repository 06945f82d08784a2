import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';
import { ascending, timed } from '../local/world.ts';
import { BareEngine, withEngine } from './world.ts';

export const benchmark: Benchmark = {
  name: 'docker.tti',
  description:
    'create to the result of the first exec over HTTP, against bare create + start + exec of the Engine API in turn (target ratio ≤ 1.0)',
  async run(context) {
    return await withEngine('docker.tti', {}, async ({ engine, create, exec, destroy }) => {
      const bare = new BareEngine(engine);
      const samples: number[] = [];
      const baseline: number[] = [];
      // In turn, so that both see the same machine.
      for (let n = 0; n < context.iterations(43); n++) {
        const warming = n < 3 && !context.smoke;
        const id = await timed(warming ? [] : samples, async () => {
          const made = await create();
          const { stdout } = await exec(made, ['/bin/echo', 'ready']);
          if (stdout !== 'ready\n') throw new Error(`it said ${stdout}`);
          return made;
        });
        await destroy(id);
        const container = await timed(warming ? [] : baseline, async () => {
          const made = await bare.create();
          await bare.exec(made, ['/bin/echo', 'ready']);
          return made;
        });
        await bare.remove(container);
      }
      bare.close();
      return [
        summarize({
          name: 'docker.tti',
          unit: 'ms',
          samples: ascending(samples),
          baseline: ascending(baseline),
          details: { baseline: 'Engine API: create, start, exec' },
        }),
      ];
    });
  },
};
