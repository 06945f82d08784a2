import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Benchmark, BenchmarkContext, Result } from '../harness.ts';
import { percentile, summarize } from '../harness.ts';
import type { FileSystem, World } from './world.ts';
import { ascending, canMount, skipped, timed, whyNot, withWorld } from './world.ts';

const FILES = 10_000;
const KB = 105;

function fill(files: number): string {
  const size = KB * 1024;
  return `mkdir -p data; head -c ${size * files} /dev/zero | split -b ${size} -d -a 5 - data/`;
}

/**
 * Wait before a measurement: every durable write on this disk waits for recent writes, and a destroyed sandbox is still being
 * removed from it.
 */
async function settle(world: World): Promise<void> {
  while (readdirSync(join(world.state, 'local', 'trash')).length > 0) await sleep(20);
  execFileSync('sync');
}

/** Runs `work` while a program in the sandbox writes all the time. */
async function whileBusy(world: World, source: string, work: () => Promise<void>): Promise<void> {
  const writer = 'until [ -e stop ]; do date > busy; sleep 0.01; done';
  const writing = world.exec(source, ['/bin/sh', '-c', writer]);
  try {
    await world.exec(source, ['/bin/sh', '-c', 'until [ -e busy ]; do sleep 0.01; done']);
    await work();
  } finally {
    await world.exec(source, ['touch', 'stop']);
    await writing;
  }
}

async function fork(world: World, source: string): Promise<string> {
  const path = `/v1/sandboxes/${source}/fork`;
  return (await world.client.expect<{ sandbox_id: string }>(201, 'POST', path, {})).sandbox_id;
}

/**
 * Measures forks of a sandbox that writes all the time, then of the same one when it runs nothing: its files are written once for
 * both.
 */
async function forks(world: World, context: BenchmarkContext, suffix: string): Promise<Result[]> {
  const files = context.smoke ? 20 : FILES;
  const creates: number[] = [];
  for (let n = 0; n < context.iterations(30); n++)
    await world.destroy(await timed(creates, () => world.create()));
  const baseline = ascending(creates);
  const idle: number[] = [];
  const busy: number[] = [];
  /** Samples with caches as cold as for a single fork. */
  const alone: number[] = [];
  for (let round = 0; round < context.iterations(5); round++) {
    await settle(world);
    const source = await timed(alone, () => world.create());
    await world.exec(source, ['/bin/sh', '-c', fill(files)]);
    await settle(world);
    await whileBusy(world, source, async () => {
      for (let n = 0; n < context.iterations(2); n++)
        await world.destroy(await timed(busy, () => fork(world, source)));
    });
    await settle(world);
    await world.destroy(await timed(idle, () => fork(world, source)));
    await world.destroy(source);
  }
  const megabytes = Math.round((files * KB) / 1024);
  const details = { files, megabytes, create_alone_ms: Number(percentile(ascending(alone), 50).toFixed(1)) };
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
