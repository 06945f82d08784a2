import { join } from 'node:path';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
import { UnixClient } from '../../tests/support/unix-client.ts';
import type { Benchmark } from '../harness.ts';
import { rate, summarize } from '../harness.ts';
import { BENCH_PROFILE } from './profile.ts';

const CLIENTS = 16;

export const benchmark: Benchmark = {
  name: 'control.throughput',
  description: 'create + destroy by 16 clients, durable, in-process backend (target ≥ 300 per s)',
  async run(context) {
    const dir = temporaryDir();
    const server = await startChild(join(import.meta.dirname, 'control-server.ts'), dir);
    const client = new UnixClient(server.socketPath, CLIENTS);
    try {
      await client.expect(201, 'POST', '/v1/profiles', BENCH_PROFILE);
      const life = async () => {
        const { sandbox_id } = await client.expect<{ sandbox_id: string }>(201, 'POST', '/v1/sandboxes', {
          profile: BENCH_PROFILE.id,
        });
        await client.expect(200, 'DELETE', `/v1/sandboxes/${sandbox_id}`);
      };
      const operationsPerRound = context.iterations(1000);
      const samples = await rate(
        { rounds: context.smoke ? 1 : 10, operationsPerRound, concurrency: CLIENTS },
        life,
      );
      return [
        summarize({
          name: 'control.throughput',
          unit: 'per_s',
          samples,
          details: { clients: CLIENTS, per_round: operationsPerRound },
        }),
      ];
    } finally {
      client.close();
      await server.stop();
      removeDir(dir);
    }
  },
};
