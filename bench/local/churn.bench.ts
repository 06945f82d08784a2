import { readdirSync, readFileSync } from 'node:fs';
import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';
import type { World } from './world.ts';
import { skipped, whyNot, withWorld } from './world.ts';

const LANES = 2;
const SECONDS = 60;

function footprint(world: World): Record<string, number> {
  const available = Number(/MemAvailable:\s+(\d+)/.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0);
  const groups = readFileSync('/proc/cgroups', 'utf8')
    .split('\n')
    .map((line) => line.split('\t'));
  return {
    available_mb: Math.round(available / 1024),
    server_rss_mb: Math.round(
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${world.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024,
    ),
    fds: readdirSync(`/proc/${world.pid}/fd`).length,
    mounts: readFileSync('/proc/self/mountinfo', 'utf8').split('\n').length - 1,
    cgroups: groups.reduce((sum, [, , count]) => sum + (Number(count) || 0), 0),
  };
}

export const benchmark: Benchmark = {
  name: 'local.churn',
  description: 'create + exec + destroy through HTTP for 60 s, two lanes (target ≥ 100 per s, nothing grows)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.churn', reason);
    return await withWorld({}, LANES, async (world) => {
      const life = async () => {
        const id = await world.create();
        await world.exec(id, ['/bin/true']);
        await world.destroy(id);
      };
      for (let n = 0; n < context.iterations(100); n++) await life();
      const before = footprint(world);
      const perSecond: number[] = [];
      const seconds = context.smoke ? 1 : SECONDS;
      let lives = 0;
      for (let second = 0; second < seconds; second++) {
        const begun = performance.now();
        let done = 0;
        const lane = async () => {
          while (performance.now() - begun < 1000) {
            await life();
            done += 1;
          }
        };
        await Promise.all(Array.from({ length: LANES }, lane));
        perSecond.push(done / ((performance.now() - begun) / 1000));
        lives += done;
      }
      const after = footprint(world);
      const change = Object.fromEntries(
        Object.entries(after).map(([key, value]) => [`${key}_change`, value - (before[key] ?? 0)]),
      );
      perSecond.sort((a, b) => a - b);
      return [
        summarize({
          name: 'local.churn',
          unit: 'per_s',
          samples: perSecond,
          details: { lanes: LANES, lives, ...change },
        }),
      ];
    });
  },
};
