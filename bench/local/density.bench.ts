import { existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';
import { ascending, skipped, timed, whyNot, withWorld } from './world.ts';

const ALIVE = 1000;

function meminfoKb(...names: string[]): number {
  const text = readFileSync('/proc/meminfo', 'utf8');
  return names.reduce((sum, name) => sum + Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1] ?? 0), 0);
}

const availableKb = () => meminfoKb('MemAvailable');

const median = (samples: number[]) => ascending(samples)[Math.floor(samples.length / 2)] ?? 0;

/** Memory that the kernel takes for an empty memory cgroup: made many times, since its counters lag behind. */
function memoryGroupKb(): number {
  const root = '/sys/fs/cgroup/memory';
  if (!existsSync(root)) return 0;
  const names = Array.from({ length: 200 }, (_, n) => `${root}/sandboxer-bench-${process.pid}-${n}`);
  const before = meminfoKb('Slab', 'Percpu');
  for (const name of names) mkdirSync(name);
  const after = meminfoKb('Slab', 'Percpu');
  for (const name of names) rmdirSync(name);
  return Math.max(0, (after - before) / names.length);
}

export const benchmark: Benchmark = {
  name: 'local.density',
  description:
    '1,000 idle sandboxes alive (target ≤ 0.6 MiB each besides the memory cgroup, create p50 ≤ 1.5× that at 10)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.density', reason);
    const alive = context.smoke ? 10 : ALIVE;
    const groupKb = memoryGroupKb();
    return await withWorld({}, 4, async (world) => {
      const samples: number[] = [];
      await world.create();
      const before = availableKb();
      for (let n = 1; n < alive; n++) await timed(samples, () => world.create());
      const eachKb = (before - availableKb()) / (alive - 1);
      const first = median(samples.slice(0, Math.min(50, samples.length)));
      const last = median(samples.slice(-50));
      const details = {
        alive,
        each_kb: Math.round(eachKb),
        memory_cgroup_kb: Math.round(groupKb),
        besides_cgroup_kb: Math.round(eachKb - groupKb),
        create_first_ms: Number(first.toFixed(2)),
        create_last_ms: Number(last.toFixed(2)),
        last_to_first: Number((last / first).toFixed(2)),
      };
      for (let left = true; left; ) {
        const page = await world.client.expect<{ items: { sandbox_id: string }[] }>(
          200,
          'GET',
          '/v1/sandboxes?limit=500&state=ready',
        );
        for (const { sandbox_id } of page.items) await world.destroy(sandbox_id);
        left = page.items.length > 0;
      }
      return [summarize({ name: 'local.density', unit: 'ms', samples: ascending(samples), details })];
    });
  },
};
