import type { Benchmark } from '../harness.ts';
import { measure, summarize } from '../harness.ts';
import { BareEngine, withEngine } from './world.ts';

export const benchmark: Benchmark = {
  name: 'docker.exec',
  description: 'exec of /bin/true over HTTP, against exec of the Engine API (target p50 ≤ 3 ms)',
  async run(context) {
    return await withEngine('docker.exec', {}, async ({ engine, create, exec }) => {
      const bare = new BareEngine(engine);
      const container = await bare.create();
      const baseline = await measure(context.iterations(30), context.iterations(2), () =>
        bare.exec(container, ['/bin/true']),
      );
      await bare.remove(container);
      bare.close();
      const id = await create();
      const samples = await measure(context.iterations(1000), context.iterations(50), async () => {
        const { exit } = await exec(id, ['/bin/true']);
        if (exit.code !== 0) throw new Error(`it ended with ${exit.code}`);
      });
      return [summarize({ name: 'docker.exec', unit: 'ms', samples, baseline })];
    });
  },
};
