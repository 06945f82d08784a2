/**
 * Measures exec in a third sandbox, and create of a fourth, beside two that take all that their limits allow, against the same
 * on an idle machine in the same run. Hogs live in sandboxes of their own with limits and a short life; destroying them ends all.
 */
import type { Benchmark, BenchmarkContext, Result } from '../harness.ts';
import { percentile, summarize } from '../harness.ts';
import type { World } from './world.ts';
import { ascending, LIMITED, skipped, whyNot, withWorld } from './world.ts';

const NEIGHBOURS = 2;
const ROUNDS = 4;
/** Time for the hogs to reach their limits. */
const SETTLE_MS = 1500;
/** Samples of one phase stop here, so that a stalled machine does not stall the benchmark. */
const PHASE_MS = 20_000;
/** Targets as multiples of the idle p99. `answer`: the server's own time, which tells a slow server from slow sandboxes. */
const TARGETS = { answer: null, exec: 3, create: 4 } as const;

/** Each hog ends by itself, too. */
const HOGS = {
  cpu: 'for n in 1 2 3 4; do timeout 90 sh -c "while :; do :; done" & done; wait',
  disk: 'timeout 90 sh -c "while :; do dd if=/dev/zero of=big bs=1M count=192 conv=fsync 2>/dev/null; done"',
  memory: 'timeout 90 sh -c "while :; do head -c 700M /dev/zero | tail -n 1 >/dev/null; done"',
  forks: 'f() { f | f & }; f; sleep 90',
} as const;
type Kind = keyof typeof HOGS;
type Operation = keyof typeof TARGETS;

interface Samples {
  readonly answer: number[];
  readonly exec: number[];
  readonly create: number[];
  failed: number;
}

const none = (): Samples => ({ answer: [], exec: [], create: [], failed: 0 });

/** Records a failed operation with the time that it took. */
async function attempt<T>(into: Samples, operation: Operation, work: () => Promise<T>): Promise<T | null> {
  const begun = performance.now();
  try {
    return await work();
  } catch {
    into.failed += 1;
    return null;
  } finally {
    into[operation].push(performance.now() - begun);
  }
}

async function sample(world: World, id: string, context: BenchmarkContext, into: Samples): Promise<void> {
  const until = performance.now() + PHASE_MS;
  const more = () => performance.now() < until;
  for (let n = 0; n < context.iterations(100) && more(); n++) {
    await attempt(into, 'answer', () => world.client.expect(200, 'GET', '/healthz'));
    await attempt(into, 'exec', () => world.exec(id, ['/bin/true']));
  }
  for (let n = 0; n < context.iterations(25) && more(); n++) {
    const made = await attempt(into, 'create', () => world.create());
    if (made !== null) await world.destroy(made);
  }
}

async function hog({ client }: World, kind: Kind): Promise<string> {
  const { sandbox_id } = await client.expect<{ sandbox_id: string }>(201, 'POST', '/v1/sandboxes', {
    profile: LIMITED.id,
    ttl: '3m',
  });
  const command = ['/bin/sh', '-c', HOGS[kind]];
  // An answer comes when the sandbox is destroyed, if at all.
  void client.call('POST', `/v1/sandboxes/${sandbox_id}/exec`, { command }).catch(() => {});
  return sandbox_id;
}

async function phase(
  world: World,
  kind: Kind,
  context: BenchmarkContext,
  measure: () => Promise<void>,
): Promise<void> {
  const hogs: string[] = [];
  try {
    for (let n = 0; n < NEIGHBOURS; n++) hogs.push(await hog(world, kind));
    await new Promise((resolve) => setTimeout(resolve, context.smoke ? 100 : SETTLE_MS));
    await measure();
  } finally {
    for (const id of hogs) await world.destroy(id);
  }
}

function rowsOf(kind: Kind, idle: Samples, loaded: Samples): Result[] {
  return (Object.keys(TARGETS) as Operation[]).map((operation) => {
    const samples = ascending(loaded[operation]);
    const baseline = ascending(idle[operation]);
    const idleP99 = percentile(baseline, 99);
    const details = {
      idle_p99: Number(idleP99.toFixed(2)),
      p99_ratio: Number((percentile(samples, 99) / idleP99).toFixed(2)),
      target_ratio: TARGETS[operation],
      failed: loaded.failed,
    };
    return summarize({
      name: `local.neighbours.${kind}.${operation}`,
      unit: 'ms',
      samples,
      baseline,
      details,
    });
  });
}

export const benchmark: Benchmark = {
  name: 'local.neighbours',
  description:
    'exec and create of a third sandbox under two CPU hogs, disk hogs, memory hogs, fork bombs, each within 2 processors, 512 MiB, 256 processes, against idle in turns (target p99: exec ≤ 3 × idle, create ≤ 4 × idle)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.neighbours', reason);
    return await withWorld({}, 2 + NEIGHBOURS, async (world) => {
      const kinds = Object.keys(HOGS) as Kind[];
      const id = await world.create();
      await sample(world, id, context, none());
      const idle = none();
      const loaded = new Map(kinds.map((kind) => [kind, none()]));
      for (let round = 0; round < context.iterations(ROUNDS); round++) {
        for (const [kind, samples] of loaded) {
          await sample(world, id, context, idle);
          await phase(world, kind, context, () => sample(world, id, context, samples));
        }
      }
      return [...loaded].flatMap(([kind, samples]) => rowsOf(kind, idle, samples));
    });
  },
};
