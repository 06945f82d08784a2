import { execFileSync } from 'node:child_process';
import type { Benchmark, BenchmarkContext, Result } from '../harness.ts';
import { summarize } from '../harness.ts';
import type { FileSystem, World } from './world.ts';
import { ascending, canMount, skipped, timed, whyNot, withWorld } from './world.ts';

const FILES = 10_000;
const KB = 105;

function fill(files: number): string {
  const size = KB * 1024;
  return `mkdir -p data; head -c ${size * files} /dev/zero | split -b ${size} -d -a 5 - data/`;
}

/** Files that have been there for a while: what was just written would be waited for by everything durable on this disk. */
async function filled(world: World, files: number): Promise<string> {
  const source = await world.create();
  await world.exec(source, ['/bin/sh', '-c', fill(files)]);
  execFileSync('sync');
  return source;
}

async function fork(world: World, source: string): Promise<string> {
  const path = `/v1/sandboxes/${source}/fork`;
  return (await world.client.expect<{ sandbox_id: string }>(201, 'POST', path, {})).sandbox_id;
}

/** Of one that runs nothing, then of one that writes all the time; both hold the same files. */
async function forks(world: World, context: BenchmarkContext, suffix: string): Promise<Result[]> {
  const files = context.smoke ? 20 : FILES;
  const creates: number[] = [];
  for (let n = 0; n < context.iterations(30); n++)
    await world.destroy(await timed(creates, () => world.create()));
  const baseline = ascending(creates);
  const idle: number[] = [];
  const busy: number[] = [];
  for (let round = 0; round < context.iterations(3); round++) {
    const source = await filled(world, files);
    await world.client.expect(202, 'POST', `/v1/sandboxes/${source}/exec`, {
      command: ['/bin/sh', '-c', 'while :; do date > busy; sleep 0.01; done'],
      background: true,
    });
    for (let n = 0; n < context.iterations(3); n++)
      await world.destroy(await timed(busy, () => fork(world, source)));
    await world.destroy(source);
    const quiet = await filled(world, files);
    await world.destroy(await timed(idle, () => fork(world, quiet)));
    await world.destroy(quiet);
  }
  const details = { files, megabytes: Math.round((files * KB) / 1024) };
  return [
    summarize({ name: `local.fork${suffix}`, unit: 'ms', samples: ascending(idle), baseline, details }),
    summarize({ name: `local.fork${suffix}.busy`, unit: 'ms', samples: ascending(busy), baseline, details }),
  ];
}

export const benchmark: Benchmark = {
  name: 'local.fork',
  description:
    'fork of a sandbox with 1 GiB in 10,000 files, idle (target ≤ 2.2× local.create) and busy (btrfs ≤ 30 ms, xfs ≤ 25 µs a file + create), on this disk, btrfs and xfs',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.fork', reason);
    const results = await withWorld({}, 2, (world) => forks(world, context, ''));
    for (const kind of ['btrfs', 'xfs'] satisfies FileSystem[]) {
      const rows = canMount(kind)
        ? await withWorld({}, 2, (world) => forks(world, context, `.${kind}`), kind)
        : skipped(`local.fork.${kind}`, 'it cannot be mounted here');
      results.push(...rows);
    }
    return results;
  },
};
