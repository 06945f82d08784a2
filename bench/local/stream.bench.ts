import { SandboxerClient } from '../../src/client/sandboxer-client.ts';
import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';
import { ascending, skipped, whyNot, withWorld } from './world.ts';

const MEGABYTES = 512;

export const benchmark: Benchmark = {
  name: 'local.stream',
  description: 'decoded stdout bytes through the TypeScript client, binary frames (target ≥ 300 MB/s)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.stream', reason);
    return await withWorld({}, 1, async (world) => {
      const client = new SandboxerClient({ url: `unix:${world.socketPath}` });
      const id = await world.create();
      const megabytes = context.smoke ? 4 : MEGABYTES;
      const samples: number[] = [];
      for (let round = 0; round < context.iterations(8); round++) {
        const begun = performance.now();
        let bytes = 0;
        const command = ['dd', 'if=/dev/zero', 'bs=1M', `count=${megabytes}`, 'status=none'];
        for await (const chunk of client.exec(id, { command })) {
          if (chunk.type === 'stdout') bytes += chunk.data.length;
        }
        if (bytes !== megabytes * 1_048_576) throw new Error(`${bytes} bytes arrived`);
        samples.push(bytes / 1e6 / ((performance.now() - begun) / 1000));
      }
      return [
        summarize({
          name: 'local.stream',
          unit: 'mb_per_s',
          samples: ascending(samples),
          details: { megabytes },
        }),
      ];
    });
  },
};
