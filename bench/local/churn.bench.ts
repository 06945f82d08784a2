import { readdirSync, readFileSync } from 'node:fs';
import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';
import { bareCrun } from './bare-crun.ts';
import { collectedMemory } from './collected-memory.ts';
import type { World } from './world.ts';
import { ascending, skipped, whyNot, withWorld } from './world.ts';

const LANES = 2;
const SECONDS = 60;
/** Rounds after which every path has been compiled and every cache has its size. */
const WARM_UP = 400;

async function footprint(world: World): Promise<Record<string, number>> {
  const { heap_mb, rss_mb } = await collectedMemory(world.pid, world.dir);
  const available = Number(/MemAvailable:\s+(\d+)/.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0);
  const groups = readFileSync('/proc/cgroups', 'utf8')
    .split('\n')
    .map((line) => line.split('\t'));
  return {
    available_mb: Math.round(available / 1024),
    server_heap_mb: heap_mb,
    server_rss_mb: rss_mb,
    fds: readdirSync(`/proc/${world.pid}/fd`).length,
    mounts: readFileSync('/proc/self/mountinfo', 'utf8').split('\n').length - 1,
    cgroups: groups.reduce((sum, [, , count]) => sum + (Number(count) || 0), 0),
  };
}

export const benchmark: Benchmark = {
  name: 'local.churn',
  description:
    'create + exec + destroy through HTTP for 60 s, two lanes, against bare `crun run … true` in as many, what the server holds compared after a garbage collection at both ends (target ≥ 100 per s, nothing grows)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.churn', reason);
    return await withWorld({}, LANES, async (world) => {
      const life = async () => {
        const id = await world.create();
        await world.exec(id, ['/bin/true']);
        await world.destroy(id);
      };
      for (let n = 0; n < context.iterations(WARM_UP); n++) await life();
      // The first bundle is skipped: the runtime still had to compile its filter.
      const sample = await world.create();
      const bare = bareCrun(world);
      await world.destroy(sample);
      const bareSeconds = async () => [
        await bare.perSecond(LANES, context.iterations(100)),
        await bare.perSecond(LANES, context.iterations(100)),
      ];
      const baseline = await bareSeconds();
      const before = await footprint(world);
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
      const after = await footprint(world);
      // At both ends, so that a machine that slows down slows both.
      baseline.push(...(await bareSeconds()));
      const change = Object.fromEntries(
        Object.entries(after).map(([key, value]) => [
          `${key}_change`,
          Number((value - (before[key] ?? 0)).toFixed(1)),
        ]),
      );
      return [
        summarize({
          name: 'local.churn',
          unit: 'per_s',
          samples: ascending(perSecond),
          baseline: ascending(baseline),
          details: { lanes: LANES, lives, ...change },
        }),
      ];
    });
  },
};
