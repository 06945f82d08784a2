/** Sandboxes that run before anybody asks: for each recipe, handed out once, with what their user brings. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import type { ProvisionSpec } from '../../../src/core/ports/extension.ts';
import type { Recipe } from '../../../src/core/recipe/recipe.ts';
import type { Living } from '../../security/local-world.ts';
import { LocalWorld, shell } from '../../security/local-world.ts';
import { tarOf } from '../../support/image-archives.ts';
import { LocalServer } from '../../support/local-server.ts';
import { until } from '../../support/until.ts';

const MOST = 3;
const world = new LocalWorld({ warm: MOST });
const reason = await world.whyNot();
const LIMIT_MS = 120_000;

/** The agent of a sandbox, as this machine knows it: the fourth word of what the spawner notes. */
const agentIn = (base: string, name: string) =>
  Number(readFileSync(join(base, 'sandboxes', name, 'run'), 'utf8').split(' ')[3]);

function aheadIn(sandboxes: string): string[] {
  return existsSync(sandboxes) ? readdirSync(sandboxes).filter((name) => name.startsWith('warm-')) : [];
}

/** What is in the directory of each, and what the spawner notes of it. */
function notesOf(base: string): string[] {
  const sandboxes = join(base, 'sandboxes');
  return aheadIn(sandboxes).map((name) => {
    const inside = readdirSync(join(sandboxes, name));
    const run = inside.includes('run') ? readFileSync(join(sandboxes, name, 'run'), 'utf8') : '';
    return `${name}: ${inside.join(' ')} (${run})`;
  });
}

/** Those that wait and have answered. */
function waiting(base: string): number[] {
  const sandboxes = join(base, 'sandboxes');
  return aheadIn(sandboxes)
    .map((name) => (existsSync(join(sandboxes, name, 'run')) ? agentIn(base, name) : 0))
    .filter((pid) => pid > 0);
}

const agentOf = ({ spec }: Living) => agentIn(world.base, spec.stamp.attemptId);

/** Asks again and again until one that waited is handed out: after the first time there is one for this recipe. */
async function oneOfThese(recipe: Partial<Recipe>, more: Partial<ProvisionSpec> = {}): Promise<Living> {
  for (let tries = 0; tries < 200; tries++) {
    const before = waiting(world.base);
    const living = await world.establish(recipe, more);
    if (before.includes(agentOf(living))) return living;
    await world.end(living);
    await sleep(100);
  }
  throw new Error('none was handed out');
}

describe.skipIf(reason !== null)(`started ahead${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(() => world.close(), LIMIT_MS);

  it(
    'sandboxes started ahead match the requested recipe: those with other start values have their own',
    async () => {
      const open = await oneOfThese({});
      const closed = await oneOfThese({ noNewPrivs: true });
      const { resources } = world.spec().recipe;
      const few = await oneOfThese({ resources: { ...resources, open_files: 77 } });
      const privileges = 'grep NoNewPrivs /proc/self/status; ulimit -n';
      expect((await shell(open.session, privileges)).stdout).toMatch(/:\t0\n/);
      expect((await shell(closed.session, privileges)).stdout).toMatch(/:\t1\n/);
      expect((await shell(few.session, privileges)).stdout).toMatch(/\n77\n/);
      for (const living of [open, closed, few]) await world.end(living);
      // All pools together.
      expect(waiting(world.base).length).toBeLessThanOrEqual(MOST);
    },
    LIMIT_MS,
  );

  it(
    'sandboxes started ahead get secrets, variables and limits at the claim, and none of it lies on a disk',
    async () => {
      const { resources } = world.spec().recipe;
      const living = await oneOfThese(
        { resources: { ...resources, pids: 40 }, variables: { PLACE: 'here' } },
        {
          secrets: [
            { name: 'TOKEN', delivery: 'env', value: 'said-in-confidence' },
            { name: 'KEY', delivery: 'file', value: 'kept-in-memory' },
          ],
        },
      );
      const inside = await shell(living.session, 'echo $PLACE $TOKEN; cat /run/secrets/KEY');
      expect(inside.stdout).toBe('here said-in-confidence\nkept-in-memory');
      const directory = join(world.base, 'sandboxes', living.spec.stamp.attemptId);
      const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((one) =>
        one.isFile(),
      );
      for (const { parentPath, name } of files)
        expect(readFileSync(join(parentPath, name), 'latin1')).not.toMatch(/in-confidence|kept-in-memory/);
      await world.end(living);
    },
    LIMIT_MS,
  );

  it(
    'sandboxes started ahead are handed out once, however many ask at the same time, and only where warm is wanted',
    async () => {
      let fromThoseWaiting = 0;
      for (let round = 0; round < 50 && fromThoseWaiting === 0; round++) {
        const before = waiting(world.base);
        const many = await Promise.all(Array.from({ length: 4 }, () => world.establish()));
        expect(new Set(many.map(agentOf)).size).toBe(many.length);
        fromThoseWaiting = many.filter((living) => before.includes(agentOf(living))).length;
        for (const living of many) await world.end(living);
        await sleep(100);
      }
      expect(fromThoseWaiting).toBeGreaterThan(0);
      const known = waiting(world.base);
      const { inputs } = world.spec().recipe;
      const own = await world.establish({ inputs: { ...inputs, warm: false } });
      expect(known).not.toContain(agentOf(own));
      await world.end(own);
    },
    LIMIT_MS,
  );
});

const BUSYBOX = ['/bin/busybox', '/usr/bin/busybox'].find((path) => existsSync(path));
const whyNoImage = reason ?? (BUSYBOX === undefined ? 'busybox-static is not installed' : null);

describe.skipIf(whyNoImage !== null)(
  `started ahead from an image${whyNoImage ? ` (${whyNoImage})` : ''}`,
  () => {
    it(
      'sandboxes started ahead from an image go when the image does',
      async () => {
        const server = await LocalServer.start(({ extensions }) => ({
          extensions: { ...extensions, local: { ...extensions.local, warm: MOST } },
        }));
        const base = join(server.dir, 'local');
        // The image has no /usr, and the default one has.
        const ofImage = () => waiting(base).filter((pid) => !existsSync(`/proc/${pid}/root/usr/bin`));
        try {
          const { client } = server;
          const tar = tarOf([
            { name: 'bin/busybox', body: readFileSync(BUSYBOX as string), mode: 0o755 },
            { name: 'bin/sh', type: '2', link: 'busybox' },
            { name: 'bin/true', type: '2', link: 'busybox' },
          ]);
          const image = await client.images.import('small', tar);
          const profile = { id: 'profile.small', version: '1.0.0', image: 'small' };
          await client.profiles.push(profile);
          const layers = () => readdirSync(join(base, 'layers'));
          expect(layers()).not.toEqual([]);
          for (let round = 0; round < 2; round++) {
            const { sandbox_id } = await client.sandboxes.create({ profile: profile.id });
            expect(await server.inside(sandbox_id, 'echo well')).toBe('well\n');
            await client.sandboxes.destroy(sandbox_id);
          }
          await until(() => ofImage().length > 0);
          await client.images.delete(image.image_id);
          const left = () => ({ layers: layers(), ofImage: ofImage(), waiting: notesOf(base) });
          await until(() => layers().length === 0 && ofImage().length === 0, left);
          const { sandbox_id } = await client.sandboxes.create({});
          expect(await server.inside(sandbox_id, 'echo still')).toBe('still\n');
        } finally {
          await server.close();
        }
      },
      LIMIT_MS,
    );
  },
);
