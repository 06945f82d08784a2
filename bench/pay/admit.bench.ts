import { join } from 'node:path';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
import { UnixClient } from '../../tests/support/unix-client.ts';
import { BENCH_PROFILE } from '../control/profile.ts';
import type { Benchmark } from '../harness.ts';
import { measure, summarize } from '../harness.ts';

/** Commits of an admission: plan, quote, hold, sandbox, first attempt and events are one. */
const COMMITS_PER_ADMISSION = 1;

export const benchmark: Benchmark = {
  name: 'pay.admit',
  description:
    'POST /v1/sandboxes?wait=none on a metered backend: quoted, held and durable (target p50 ≤ 2 ms, p99 ≤ 6 ms, ratio ≤ 4)',
  async run(context) {
    const dir = temporaryDir();
    const bareDir = temporaryDir();
    const server = await startChild(join(import.meta.dirname, 'pay-server.ts'), dir);
    const bare = await startChild(join(import.meta.dirname, '../control/bare-server.ts'), bareDir);
    const client = new UnixClient(server.socketPath, 1);
    const bareClient = new UnixClient(bare.socketPath, 1);
    try {
      await client.expect(201, 'POST', '/v1/profiles', BENCH_PROFILE);
      await client.expect(200, 'POST', '/v1/credits/grants', { amount_micro_usd: 1_000_000_000_000 });
      const budget = { scope: 'workspace', period: 'month', limit_micro_usd: 1_000_000_000_000 };
      await client.expect(201, 'POST', '/v1/budgets', budget);
      const samples: number[] = [];
      // Work that an admission starts is over before the next one is measured.
      const admit = async () => {
        const begun = performance.now();
        const made = await client.expect(202, 'POST', '/v1/sandboxes?wait=none', {
          profile: BENCH_PROFILE.id,
        });
        samples.push(performance.now() - begun);
        const { sandbox_id: id } = made as { sandbox_id: string };
        await client.expect(200, 'DELETE', `/v1/sandboxes/${id}`);
      };
      const commits = () =>
        bareClient.expect(200, 'POST', `/commits/${COMMITS_PER_ADMISSION}`, { profile: BENCH_PROFILE.id });
      const n = context.iterations(500);
      const baseline: number[] = [];
      for (let round = 0; round < 4; round++) {
        baseline.push(...(await measure(Math.ceil(n / 4), round === 0 ? 50 : 5, commits)));
        if (round === 0) {
          for (let i = 0; i < 50; i++) await admit();
          samples.length = 0;
        }
        for (let i = 0; i < Math.ceil(n / 4); i++) await admit();
      }
      samples.sort((a, b) => a - b);
      baseline.sort((a, b) => a - b);
      const details = { commits: COMMITS_PER_ADMISSION, budgets: 1 };
      return [summarize({ name: 'pay.admit', unit: 'ms', samples, baseline, details })];
    } finally {
      client.close();
      bareClient.close();
      await Promise.all([server.stop(), bare.stop()]);
      removeDir(dir);
      removeDir(bareDir);
    }
  },
};
