/** What the control groups of a sandbox count, on whichever version this machine has. */
import { afterAll, describe, expect, it } from 'vitest';
import { findHostFacts } from '../../../src/extensions/local/host/host-facts.ts';
import type { Living } from '../../security/local-world.ts';
import { LocalWorld, shell } from '../../security/local-world.ts';

/** Two groups take turns where they are used again: one of a sandbox, one of the launcher that waits. */
const world = new LocalWorld({ launchers: 1, warm: 0 });
const { controllers } = findHostFacts({ directory: world.base });
const lacking = (['memory', 'cpu'] as const).filter((name) => !controllers.includes(name));
const reason =
  (await world.whyNot()) ?? (lacking.length === 0 ? null : `no ${lacking.join(', ')} controller`);
const LIMIT_MS = 120_000;

const usedBy = async ({ handle }: Living) => await world.extension.measure(handle);
/** Fails where that much cannot be had. */
const memory = (megabytes: number) =>
  `test $(head -c ${megabytes * 1_000_000} /dev/zero | tail | wc -c) -eq ${megabytes * 1_000_000}`;

describe.skipIf(reason !== null)(`control groups${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(() => world.close(), LIMIT_MS);

  it(
    'control groups report the peak of each sandbox, also where an earlier one used more',
    async () => {
      const large = await world.establish();
      expect((await shell(large.session, memory(150))).code).toBe(0);
      expect((await usedBy(large)).peakMemoryMb).toBeGreaterThan(130);
      await world.end(large);
      for (let round = 0; round < 4; round++) {
        const small = await world.establish();
        expect((await shell(small.session, memory(1))).code).toBe(0);
        const { peakMemoryMb } = await usedBy(small);
        expect(peakMemoryMb).toBeGreaterThan(0.1);
        expect(peakMemoryMb).toBeLessThan(100);
        await world.end(small);
      }
    },
    LIMIT_MS,
  );

  it(
    'control groups go on counting when the spawner was killed and another took over',
    async () => {
      const living = await world.establish();
      await shell(living.session, `${memory(150)}; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done`);
      const before = await usedBy(living);
      process.kill(await world.spawnerPid(), 'SIGKILL');
      await world.restart();
      const session = await world.extension.connect(living.handle, world.context);
      const after = await usedBy(living);
      // Version 1 counts the time of the processor only where cpuacct is mounted together with cpu.
      expect(after.cpuMs ?? 0).toBeGreaterThanOrEqual(before.cpuMs ?? 0);
      expect(after.peakMemoryMb).toBeGreaterThanOrEqual(before.peakMemoryMb ?? Number.NaN);
      await world.end({ ...living, session });
    },
    LIMIT_MS,
  );
});

describe.skipIf(reason !== null)('a spawner that was started where there were no control groups', () => {
  it(
    'a spawner started without control groups is replaced by one that holds limits, and its sandboxes go on',
    async () => {
      const poor = new LocalWorld({ cgroups: false });
      const unlimited = await poor.establish();
      await unlimited.session.close();
      const rich = new LocalWorld({ directory: poor.base });
      try {
        const { resources } = rich.spec().recipe;
        const limited = await rich.establish({ resources: { ...resources, memory_mb: 64 } });
        expect((await shell(limited.session, memory(150))).code).not.toBe(0);
        const again = await rich.extension.connect(unlimited.handle, rich.context);
        expect((await shell(again, 'echo here')).stdout).toBe('here\n');
        await again.close();
        await limited.session.close();
      } finally {
        await poor.extension.close();
        await rich.close();
        await poor.close();
      }
    },
    LIMIT_MS,
  );
});
