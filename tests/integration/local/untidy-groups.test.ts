/** Groups that are used again: what a sandbox leaves charged to its own counts for nobody else. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SpawnerClient } from '../../../src/extensions/local/engine/spawner-client.ts';
import { findHostFacts } from '../../../src/extensions/local/host/host-facts.ts';
import type { Living } from '../../security/local-world.ts';
import { LocalWorld, shell } from '../../security/local-world.ts';
import { holdAtWork, hugeTrash } from './huge-trash.ts';
import { childrenOf, goOn, hold, names, until } from './killable-server.ts';

const world = new LocalWorld({ launchers: 1, warm: 0 });
const { controllers, unified } = findHostFacts({ directory: world.base });
const usedAgain = unified === null && controllers.includes('memory');
const reason = (await world.whyNot()) ?? (usedAgain ? null : 'each sandbox has a group of its own here');
const LIMIT_MS = 120_000;
const LARGE = 50_000_000;
/** Cannot be had back as long as the mounts of the sandbox are there. */
const FILL = `head -c ${LARGE} /dev/zero > /dev/shm/large && wc -c < /dev/shm/large`;

async function memoryGroup({ spec }: Living): Promise<string> {
  const spawner = await SpawnerClient.open(join(world.base, 'spawner.sock'), () => {});
  const { group_memory } = await spawner.call('inspect', { id: spec.stamp.attemptId });
  spawner.close();
  return String(group_memory);
}

/** Nothing where the group is gone. */
const charged = (group: string): number => {
  try {
    return Number(readFileSync(join(group, 'memory.usage_in_bytes'), 'utf8'));
  } catch {
    return 0;
  }
};

async function filled(): Promise<{ living: Living; group: string }> {
  const living = await world.establish();
  const { stdout, stderr } = await shell(living.session, FILL, 'root');
  expect(`${stdout}${stderr}`.trim()).toBe(String(LARGE));
  const group = await memoryGroup(living);
  expect(charged(group)).toBeGreaterThan(LARGE);
  return { living, group };
}

describe.skipIf(reason !== null)(`groups that are used again${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(() => world.close(), LIMIT_MS);

  it(
    'a reused group stays reserved until its former content is gone, however long the removal takes',
    async () => {
      const { living, group } = await filled();
      const [janitor = 0] = childrenOf(await world.spawnerPid(), 'sbx-janitor');
      await hold(janitor);
      try {
        await world.end(living);
        expect(charged(group)).toBeGreaterThan(LARGE);
        const { resources } = world.spec().recipe;
        for (let round = 0; round < 4; round++) {
          const next = await world.establish({ resources: { ...resources, memory_mb: 32 } });
          expect(await memoryGroup(next)).not.toBe(group);
          await world.end(next);
        }
      } finally {
        goOn(janitor);
      }
      await until('what was left is gone', () => charged(group) < LARGE / 8 || null);
    },
    LIMIT_MS,
  );

  it(
    'groups that are used again are emptied while a huge tree is being removed',
    async () => {
      const { living, group } = await filled();
      const huge = hugeTrash(world.base);
      await world.end(await world.establish());
      const janitor = await holdAtWork(await world.spawnerPid(), huge);
      await world.end(living);
      goOn(janitor);
      await until('what was left is gone', () => charged(group) < LARGE / 8 || null, { every: 0 });
      expect(existsSync(huge)).toBe(true);
      await until('the trash is empty', () => names(join(world.base, 'trash')).length === 0 || null);
    },
    LIMIT_MS,
  );
});
