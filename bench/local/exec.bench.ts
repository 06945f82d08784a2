import type { Benchmark } from '../harness.ts';
import { measure, summarize } from '../harness.ts';
import { dockerBaseline, skipped, whyNot, withWorld } from './world.ts';

async function dockerExecs(runs: number): Promise<{ samples: number[] | null; note: string }> {
  const docker = await dockerBaseline();
  try {
    const id = docker.output('run', '-d', '--rm', '--network', 'none', docker.image, 'sleep', '600');
    return { samples: docker.runs(runs, 'exec', id, '/bin/true'), note: docker.note };
  } finally {
    await docker.close();
  }
}

export const benchmark: Benchmark = {
  name: 'local.exec',
  description: 'exec of /bin/true over HTTP, against `docker exec` (target p50 ≤ 2 ms, ratio ≤ 0.067)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.exec', reason);
    const docker = await dockerExecs(context.iterations(20));
    return await withWorld({}, 1, async (world) => {
      const id = await world.create();
      const samples = await measure(context.iterations(1000), context.iterations(50), async () => {
        const { exit } = await world.exec(id, ['/bin/true']);
        if (exit.code !== 0) throw new Error(`it ended with ${exit.code}`);
      });
      const details = { docker: docker.note };
      return [
        summarize({
          name: 'local.exec',
          unit: 'ms',
          samples,
          details,
          ...(docker.samples === null ? {} : { baseline: docker.samples }),
        }),
      ];
    });
  },
};
