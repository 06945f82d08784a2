import { join } from 'node:path';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
import { UnixClient } from '../../tests/support/unix-client.ts';
import type { Benchmark } from '../harness.ts';
import { measure, summarize } from '../harness.ts';
import { BENCH_PROFILE, COMMITS_PER_CREATE } from './profile.ts';

export const benchmark: Benchmark = {
  name: 'control.create',
  description:
    'POST /v1/sandboxes to ready over the unix socket, durable, in-process backend (target p50 ≤ 3 ms, ratio ≤ 2.5)',
  async run(context) {
    const dir = temporaryDir();
    const bareDir = temporaryDir();
    const server = await startChild(join(import.meta.dirname, 'control-server.ts'), dir);
    const bare = await startChild(join(import.meta.dirname, 'bare-server.ts'), bareDir);
    const client = new UnixClient(server.socketPath, 1);
    const bareClient = new UnixClient(bare.socketPath, 1);
    try {
      await client.expect(201, 'POST', '/v1/profiles', BENCH_PROFILE);
      const create = () => client.expect(201, 'POST', '/v1/sandboxes', { profile: BENCH_PROFILE.id });
      const commits = () =>
        bareClient.expect(200, 'POST', `/commits/${COMMITS_PER_CREATE}`, { profile: BENCH_PROFILE.id });
      const n = context.iterations(1000);
      const samples: number[] = [];
      const baseline: number[] = [];
      // In turns, so that a disk that slows down slows both.
      for (let round = 0; round < 4; round++) {
        baseline.push(...(await measure(Math.ceil(n / 4), round === 0 ? 50 : 5, commits)));
        samples.push(...(await measure(Math.ceil(n / 4), round === 0 ? 100 : 5, create)));
      }
      samples.sort((a, b) => a - b);
      baseline.sort((a, b) => a - b);
      return [
        summarize({
          name: 'control.create',
          unit: 'ms',
          samples,
          baseline,
          details: { commits: COMMITS_PER_CREATE },
        }),
      ];
    } finally {
      client.close();
      bareClient.close();
      await Promise.all([server.stop(), bare.stop()]);
      removeDir(dir);
      removeDir(bareDir);
    }
  },
};
