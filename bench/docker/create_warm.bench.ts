import { setTimeout as sleep } from 'node:timers/promises';
import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';
import { ascending, timed } from '../local/world.ts';
import { withEngine } from './world.ts';

const POOL = 4;

export const benchmark: Benchmark = {
  name: 'docker.create_warm',
  description: 'POST /v1/sandboxes to ready from the pool of started containers (target p50 ≤ 10 ms)',
  async run(context) {
    return await withEngine('docker.create_warm', { warm: POOL }, async ({ engine, create, destroy }) => {
      // The claim is measured, not the wait for a warm sandbox: the pool holds one before each.
      const waiting = async () => {
        const listed = await engine.docker(
          'ps',
          '-q',
          '--filter',
          'name=sbx-warm',
          '--filter',
          'status=running',
        );
        return listed === '' ? 0 : listed.split('\n').length;
      };
      const samples: number[] = [];
      let missed = 0;
      for (let n = 0; n < context.iterations(63); n++) {
        for (let tries = 0; tries < 100 && (await waiting()) === 0; tries++) await sleep(50);
        await sleep(300);
        const before = await waiting();
        const id = await timed(n < 3 && !context.smoke ? [] : samples, () => create());
        if (before === 0) missed++;
        await destroy(id);
      }
      const details = { pool: POOL, missed };
      return [summarize({ name: 'docker.create_warm', unit: 'ms', samples: ascending(samples), details })];
    });
  },
};
