import { spawnSync } from 'node:child_process';
import type { Benchmark } from '../harness.ts';
import { measure, summarize } from '../harness.ts';
import { dockerRuns, skipped, whyNoDocker, whyNot, withWorld } from './world.ts';

function dockerExecs(runs: number): number[] | null {
  if (whyNoDocker() !== null) return null;
  const args = ['run', '-d', '--rm', '--network', 'none', 'busybox', 'sleep', '600'];
  const id = spawnSync('docker', args, { encoding: 'utf8' }).stdout.trim();
  try {
    return dockerRuns(runs, 'exec', id, '/bin/true');
  } finally {
    spawnSync('docker', ['rm', '-f', id], { stdio: 'ignore' });
  }
}

export const benchmark: Benchmark = {
  name: 'local.exec',
  description: 'exec of /bin/true over HTTP, against `docker exec` (target p50 ≤ 2 ms, ratio ≤ 0.067)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.exec', reason);
    const docker = dockerExecs(context.iterations(20));
    return await withWorld({}, 1, async (world) => {
      const id = await world.create();
      const samples = await measure(context.iterations(1000), context.iterations(50), async () => {
        const { exit } = await world.exec(id, ['/bin/true']);
        if (exit.code !== 0) throw new Error(`it ended with ${exit.code}`);
      });
      const details = { docker: whyNoDocker() ?? 'exec' };
      return [
        summarize({
          name: 'local.exec',
          unit: 'ms',
          samples,
          details,
          ...(docker === null ? {} : { baseline: docker }),
        }),
      ];
    });
  },
};
