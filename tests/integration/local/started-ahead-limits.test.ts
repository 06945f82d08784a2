/** What a sandbox is allowed, and what runs in it, before anybody has claimed it. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import type { Resources } from '../../../src/contract/profiles/profile.ts';
import type { ProvisionSpec } from '../../../src/core/ports/extension.ts';
import type { Recipe } from '../../../src/core/recipe/recipe.ts';
import { findHostFacts } from '../../../src/extensions/local/host/host-facts.ts';
import { LocalWorld } from '../../security/local-world.ts';
import { tarOf } from '../../support/image-archives.ts';
import { until } from '../../support/until.ts';
import { memoryOf, pidsOf, waiting } from './waiting-ahead.ts';

const world = new LocalWorld({ warm: 3 });
const folder = mkdtempSync(join(tmpdir(), 'sandboxer-greedy-'));
const program = join(folder, 'sh');
const built = spawnSync(process.env.CC ?? 'cc', [
  '-O1',
  '-static',
  '-o',
  program,
  join(import.meta.dirname, 'greedy-shell.c'),
]);
const { controllers } = findHostFacts({ directory: world.base });
const lacking = (['memory', 'pids'] as const).filter((name) => !controllers.includes(name));
const reason =
  (await world.whyNot()) ??
  (built.status === 0 ? null : 'there is no C compiler for the image') ??
  (lacking.length === 0 ? null : `no ${lacking.join(', ')} controller`);
const LIMIT_MS = 120_000;
const SMALL = { pids: 16, memory_mb: 32 };

/** An image of ours has no /usr; the image `host` has. */
const ofImage = () => waiting(world.base).filter(({ pid }) => !existsSync(`/proc/${pid}/root/usr/bin`));

async function* body(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function greedyImage(limits: Partial<Resources> = {}): Promise<Partial<Recipe>> {
  const spec = { imageId: 'img_greedy', owner: 'local-tests', maxBytes: 1 << 30 };
  const file = readFileSync(program);
  const tar = tarOf([
    { name: 'bin/sh', body: file, mode: 0o755 },
    { name: 'bin/true', body: file, mode: 0o755 },
    { name: 'tmp/', type: '5', mode: 0o1777 },
  ]);
  const { digest } = await world.extension.importImage(spec, body(tar), world.context);
  const keptImage = { imageId: spec.imageId, digest, extensionId: 'ext.local' };
  const { resources } = world.spec().recipe;
  return { image: 'greedy', keptImage, resources: { ...resources, ...limits } };
}

describe.skipIf(reason !== null)(`a sandbox not yet claimed${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(async () => {
    await world.close();
    rmSync(folder, { recursive: true });
  }, LIMIT_MS);

  it(
    'a sandbox of an image has the limits of its profile, and no program of the image runs in it',
    async () => {
      const image = await greedyImage(SMALL);
      const first = await world.establish(image);
      await until(() => ofImage().length > 0);
      // Long enough for a first program to leave what it leaves.
      await sleep(1_000);
      for (const { name, pid } of ofImage()) {
        const upper = readdirSync(join(world.base, 'sandboxes', name, 'disk', 'upper'), { recursive: true });
        expect(upper.filter((path) => String(path).includes('ran-ahead'))).toEqual([]);
        expect(memoryOf(pid)).toBe(String(SMALL.memory_mb << 20));
        // A process of the spawner's may be in the group, too.
        expect([String(SMALL.pids), String(SMALL.pids + 1)]).toContain(pidsOf(pid));
        expect(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()).toBe('');
      }
      await world.end(first);
    },
    LIMIT_MS,
  );

  it(
    'a sandbox of an image is handed to its own workspace alone',
    async () => {
      const image = await greedyImage();
      const pids = () => ofImage().map(({ pid }) => pid);
      const isFromPool = async (more: Partial<ProvisionSpec>) => {
        const before = pids();
        const living = await world.establish(image, more);
        const run = join(world.base, 'sandboxes', living.spec.stamp.attemptId, 'run');
        const pid = Number(readFileSync(run, 'utf8').split(' ')[3]);
        await world.end(living);
        return before.includes(pid);
      };
      await expect.poll(() => isFromPool({}), { timeout: 60_000 }).toBe(true);
      // By now another one of this image waits.
      await sleep(2_000);
      expect(pids()).not.toEqual([]);
      expect(await isFromPool({ workspaceId: 'another' })).toBe(false);
      await expect.poll(() => isFromPool({}), { timeout: 60_000 }).toBe(true);
    },
    LIMIT_MS,
  );

  it(
    'a sandbox of the host’s own image has the limits of a profile that names none',
    async () => {
      const quiet = new LocalWorld({ warm: 1 });
      try {
        const { inputs } = quiet.spec().recipe;
        // Does not take the one that waits, so that no request has said yet which limits are wanted.
        await quiet.end(await quiet.establish({ inputs: { ...inputs, warm: false } }));
        await until(() => waiting(quiet.base).length > 0);
        for (const { pid } of waiting(quiet.base)) {
          expect(Number(pidsOf(pid))).toBeLessThanOrEqual(4_097);
          expect(Number(memoryOf(pid))).toBeLessThan(2 ** 50);
        }
      } finally {
        await quiet.close();
      }
    },
    LIMIT_MS,
  );
});
