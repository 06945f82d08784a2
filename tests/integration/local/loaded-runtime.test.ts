/** The runtime is loaded once and has a child for each sandbox, where it can be; otherwise it is loaded for each. */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { findHostFacts } from '../../../src/extensions/local/host/host-facts.ts';
import { programFolder } from '../../../src/extensions/shared/own-programs.ts';
import { LocalWorld, shell } from '../../security/local-world.ts';
import { until } from '../../support/until.ts';
import { childrenOf } from './killable-server.ts';

const first = new LocalWorld({ launchers: 2, warm: 0 });
const { runtime } = findHostFacts({ directory: first.base });
const reason = (await first.whyNot()) ?? (runtime?.kind === 'crun' ? null : 'the runtime is not crun');
const LIMIT_MS = 120_000;

const exeOf = (pid: number) => {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return '';
  }
};

async function lives(world: LocalWorld): Promise<void> {
  const living = await world.establish();
  expect((await shell(living.session, 'echo well')).stdout).toBe('well\n');
  await world.end(living);
}

/** What those who have the sandboxes are. */
async function keepers(world: LocalWorld): Promise<string[]> {
  return childrenOf(await world.spawnerPid(), 'sbx-keeper')
    .map(exeOf)
    .filter(Boolean);
}

/** Our programs in a folder of their own, with this in the place of the library. */
function programsWith(world: LocalWorld, name: string, library: Buffer | null): string {
  const folder = join(world.directory, name);
  const own = programFolder();
  mkdirSync(folder, { recursive: true });
  for (const file of readdirSync(own).filter((one) => /^sandboxer-(?:agent|spawner|sudo)$/.test(one)))
    copyFileSync(join(own, file), join(folder, file));
  if (library !== null) writeFileSync(join(folder, 'sandboxer-preload.so'), library);
  return folder;
}

describe.skipIf(reason !== null)(`a loaded runtime${reason === null ? '' : ` (${reason})`}`, () => {
  const worlds = [first];
  afterAll(async () => {
    for (const world of worlds) await world.close();
  }, LIMIT_MS);

  it(
    'a loaded runtime is the parent of sandboxes',
    async () => {
      for (let round = 0; round < 6; round++) await lives(first);
      const found = await keepers(first);
      expect(found.length).toBeGreaterThan(0);
      expect(new Set(found)).toEqual(new Set([runtime?.path]));
      for (const pid of childrenOf(await first.spawnerPid(), 'sbx-keeper')) {
        const mapped = readFileSync(`/proc/${pid}/maps`, 'utf8');
        expect(mapped).toContain('sandboxer-preload');
        // Ours is in its place: what is never called is not copied for every sandbox.
        expect(mapped).not.toMatch(/libsystemd|libgcrypt/);
      }
    },
    LIMIT_MS,
  );

  it(
    'a loaded runtime is one for all without control groups, and sandboxes start without it when it is gone',
    async () => {
      const world = new LocalWorld({ launchers: 2, warm: 0, cgroups: false });
      worlds.push(world);
      for (let round = 0; round < 3; round++) await lives(world);
      expect(await keepers(world)).toEqual([runtime?.path]);
      for (const pid of childrenOf(await world.spawnerPid(), 'sbx-keeper')) process.kill(pid, 'SIGKILL');
      await until(async () => (await keepers(world)).length === 0);
      for (let round = 0; round < 6; round++) await lives(world);
    },
    LIMIT_MS,
  );

  it.each([
    ['there is no library', null],
    ['the library is none', Buffer.from('not a library')],
  ])(
    'a loaded runtime is not needed: %s',
    async (name, library) => {
      const world = new LocalWorld({
        launchers: 2,
        warm: 0,
        binaries: programsWith(first, name.replaceAll(' ', '-'), library),
      });
      worlds.push(world);
      for (let round = 0; round < 12; round++) await lives(world);
      const log = readFileSync(join(world.base, 'spawner.log'), 'utf8');
      if (library !== null && (await keepers(world)).length > 0) expect(log).toMatch(/cannot be kept loaded/);
      expect(await keepers(world)).not.toContain(runtime?.path);
    },
    LIMIT_MS,
  );
});
