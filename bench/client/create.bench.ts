import { join } from 'node:path';
import { SandboxerClient } from '../../src/client/sandboxer-client.ts';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
import { UnixClient } from '../../tests/support/unix-client.ts';
import { BENCH_PROFILE } from '../control/profile.ts';
import type { Benchmark } from '../harness.ts';
import { measure, percentile, summarize } from '../harness.ts';

export const benchmark: Benchmark = {
  name: 'client.create',
  description:
    'create by the TypeScript client against a raw keep-alive request (target: ≤ 0.3 ms more at p50)',
  async run(context) {
    const dir = temporaryDir();
    const server = await startChild(join(import.meta.dirname, '..', 'control', 'control-server.ts'), dir);
    const raw = new UnixClient(server.socketPath, 1);
    const client = new SandboxerClient({ url: `unix:${server.socketPath}` });
    try {
      await raw.expect(201, 'POST', '/v1/profiles', BENCH_PROFILE);
      const samples: number[] = [];
      const baseline: number[] = [];
      for (let round = 0; round < 5; round++) {
        const n = context.iterations(200);
        baseline.push(
          ...(await measure(n, 20, () =>
            raw.expect(201, 'POST', '/v1/sandboxes', { profile: BENCH_PROFILE.id }),
          )),
        );
        samples.push(...(await measure(n, 20, () => client.sandboxes.create({ profile: BENCH_PROFILE.id }))));
      }
      samples.sort((a, b) => a - b);
      baseline.sort((a, b) => a - b);
      const overhead = percentile(samples, 50) - percentile(baseline, 50);
      return [
        summarize({
          name: 'client.create',
          unit: 'ms',
          samples,
          baseline,
          details: { overhead_ms: Number(overhead.toFixed(3)) },
        }),
      ];
    } finally {
      raw.close();
      client.close();
      await server.stop();
      removeDir(dir);
    }
  },
};
