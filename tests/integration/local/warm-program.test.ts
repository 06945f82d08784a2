/** The program that a profile names for sandboxes that were started ahead: under its limits, for its workspace alone. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import type { ProvisionSpec } from '../../../src/core/ports/extension.ts';
import type { Recipe } from '../../../src/core/recipe/recipe.ts';
import { findHostFacts } from '../../../src/extensions/local/host/host-facts.ts';
import { LocalWorld, shell } from '../../security/local-world.ts';
import { until } from '../../support/until.ts';
import { memoryOf, pidsOf, processesOf, waiting } from './waiting-ahead.ts';

/** Room for each recipe of these tests: none has to wait until another one goes. */
const world = new LocalWorld({ warm: 12 });
const { controllers } = findHostFacts({ directory: world.base });
const lacking = (['memory', 'pids'] as const).filter((name) => !controllers.includes(name));
const reason =
  (await world.whyNot()) ?? (lacking.length === 0 ? null : `no ${lacking.join(', ')} controller`);
const LIMIT_MS = 120_000;
const SMALL = { pids: 24, memory_mb: 48 };

const program = (script: string) => ['/bin/sh', '-c', script];

function recipe(script: string, { resources } = world.spec().recipe): Partial<Recipe> {
  return { warmProgram: program(script), resources: { ...resources, ...SMALL } };
}

/** What the program wrote into the home of one that waits, or was claimed; `null` when it wrote nothing yet. */
function written(name: string, file: string, base = world.base): string | null {
  const path = join(base, 'sandboxes', name, 'disk', 'upper', 'home', 'user', file);
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
}

const pidIn = (name: string) =>
  Number(readFileSync(join(world.base, 'sandboxes', name, 'run'), 'utf8').split(' ')[3]);

/** Whether a sandbox of this recipe was one that waited; it has ended by then. */
async function isFromPool(of: Partial<Recipe>, more: Partial<ProvisionSpec> = {}): Promise<boolean> {
  const before = waiting(world.base).map(({ pid }) => pid);
  const living = await world.establish(of, more);
  const pid = pidIn(living.spec.stamp.attemptId);
  await world.end(living);
  return before.includes(pid);
}

describe.skipIf(reason !== null)(`warm program${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(() => world.close(), LIMIT_MS);

  it(
    'a warm program runs once before the claim, under the limits of its profile, without variables and secrets',
    async () => {
      const named = recipe('id -un >who; env >seen; date +%N >>times');
      const secret = { name: 'TOKEN', value: 'not-yet', delivery: 'env' } as const;
      await world.end(await world.establish(named));
      const ran = () => waiting(world.base).filter(({ name }) => written(name, 'times') !== null);
      await until(() => ran().length > 0);
      for (const { name, pid } of ran()) {
        expect(written(name, 'who')).toBe('user\n');
        expect(memoryOf(pid)).toBe(String(SMALL.memory_mb << 20));
        expect([SMALL.pids, SMALL.pids + 1].map(String)).toContain(pidsOf(pid));
      }
      // Until what was asked for by the first request is there.
      await sleep(2_000);
      const ahead = ran().map(({ pid }) => pid);
      const living = await world.establish({ ...named, variables: { ASKED: 'for' } }, { secrets: [secret] });
      expect(ahead).toContain(pidIn(living.spec.stamp.attemptId));
      const { stdout } = await shell(living.session, 'wc -l <times; cat seen; echo "now $TOKEN $ASKED"');
      expect(stdout).toMatch(/^1\n/);
      expect(stdout).toMatch(/now not-yet for\n$/);
      expect(stdout.replace(/now .*\n$/, '')).not.toMatch(/TOKEN|ASKED|not-yet/);
      await world.end(living);
    },
    LIMIT_MS,
  );

  it(
    'a sandbox in which it ran goes to its own workspace, and to the same program and limits, alone',
    async () => {
      const named = recipe('echo mine >whose');
      await expect.poll(() => isFromPool(named), { timeout: 60_000 }).toBe(true);
      const ready = () => waiting(world.base).some(({ name }) => written(name, 'whose') !== null);
      await until(ready);
      await sleep(1_000);
      expect(await isFromPool(named, { workspaceId: 'another' })).toBe(false);
      expect(await isFromPool(recipe('echo other >whose'))).toBe(false);
      const { resources } = world.spec().recipe;
      expect(await isFromPool({ ...named, resources: { ...resources, ...SMALL, pids: 64 } })).toBe(false);
    },
    LIMIT_MS,
  );

  it(
    'a warm program that leaves processes behind stays within its limits, its sandbox goes, and it is not run again',
    async () => {
      const greedy = recipe(
        'echo x >greedy; i=0; while [ $i -lt 200 ]; do sleep 300 & i=$((i+1)); done; exit 0',
      );
      await world.end(await world.establish(greedy));
      const seen = new Set<string>();
      const most = { processes: 0 };
      const look = () => {
        for (const { name, pid } of waiting(world.base)) {
          if (written(name, 'greedy') === null) continue;
          seen.add(name);
          // One that has just ended is in no group that counts.
          most.processes = Math.max(most.processes, processesOf(pid) || 0);
        }
      };
      await until(() => {
        look();
        return seen.size > 0 && waiting(world.base).every(({ name }) => !seen.has(name));
      });
      expect(most.processes).toBeGreaterThan(2);
      expect(most.processes).toBeLessThanOrEqual(SMALL.pids + 1);
      await expect.poll(() => isFromPool(greedy), { timeout: 60_000 }).toBe(true);
      look();
      expect(seen.size).toBe(1);
    },
    LIMIT_MS,
  );

  it(
    'a warm program out of memory is not run again, and no program of the next user is blamed for it',
    async () => {
      const hungry = recipe('echo x >hungry; head -c 200000000 /dev/zero | tail; exit 0');
      await world.end(await world.establish(hungry));
      const seen = new Set<string>();
      await until(() => {
        for (const { name } of waiting(world.base)) if (written(name, 'hungry') !== null) seen.add(name);
        return seen.size > 0 && waiting(world.base).every(({ name }) => !seen.has(name));
      });
      await expect.poll(() => isFromPool(hungry), { timeout: 60_000 }).toBe(true);
      const living = await world.establish(hungry);
      const { stdout, exit } = await shell(living.session, 'ls ~; kill -9 $$');
      expect(stdout).not.toContain('hungry');
      expect(exit).toMatchObject({ code: 137 });
      expect(exit).not.toMatchObject({ out_of_memory: true });
      await world.end(living);
    },
    LIMIT_MS,
  );

  it(
    'a warm program is not run where no limit can be in force',
    async () => {
      const without = new LocalWorld({ warm: 1, cgroups: false });
      try {
        const named = { warmProgram: program('echo x >ran') };
        await without.end(await without.establish(named));
        await until(() => waiting(without.base).length > 0);
        await sleep(1_000);
        expect(waiting(without.base).flatMap(({ name }) => written(name, 'ran', without.base) ?? [])).toEqual(
          [],
        );
      } finally {
        await without.close();
      }
    },
    LIMIT_MS,
  );
});
