/** What the kernel keeps for a user namespace or a session is a sandbox's own: none is handed on to the next. */
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SpawnerClient } from '../../src/extensions/local/engine/spawner-client.ts';
import type { Living } from './local-world.ts';
import { LocalWorld, shell } from './local-world.ts';

const world = new LocalWorld({ warm: 0 });
const reason = await world.whyNot();
const ROUNDS = 12;

async function firstProcess({ spec }: Living): Promise<number> {
  const client = await SpawnerClient.open(join(world.base, 'spawner.sock'), () => {});
  const { pid } = await client.call('inspect', { id: spec.stamp.attemptId });
  client.close();
  return Number(pid);
}

/** Session keyrings that this user may see. The kernel collects those that are over a little later. */
const keyrings = () =>
  new Set(
    readFileSync('/proc/keys', 'utf8')
      .split('\n')
      .filter((line) => /keyring +_ses(\.|:)/.test(line))
      .map((line) => line.split(' ')[0]),
  );

describe.skipIf(reason !== null)(`kernel objects${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(() => world.close());

  it('user namespace: another one for each sandbox, one after the other in the same ids', async () => {
    // Held open: the number of one that is gone is given to the next.
    const held: number[] = [];
    const maps = new Set<string>();
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const living = await world.establish({}, { workspaceId: `tests-${round % 3}` });
        held.push(openSync(`/proc/${await firstProcess(living)}/ns/user`, 'r'));
        maps.add((await shell(living.session, 'cat /proc/self/uid_map')).stdout);
        await world.end(living);
      }
      expect(maps.size).toBeLessThan(ROUNDS);
      expect(new Set(held.map((fd) => fstatSync(fd).ino)).size).toBe(ROUNDS);
    } finally {
      for (const fd of held) closeSync(fd);
    }
  });

  it('user namespace: another one for each of several sandboxes at once', async () => {
    const living = await Promise.all(Array.from({ length: 6 }, () => world.establish()));
    const pids = await Promise.all(living.map(firstProcess));
    const held = pids.map((pid) => openSync(`/proc/${pid}/ns/user`, 'r'));
    expect(new Set(held.map((fd) => fstatSync(fd).ino)).size).toBe(living.length);
    for (const fd of held) closeSync(fd);
    for (const one of living) await world.end(one);
  });

  it('session keyring: each sandbox has a fresh one', async () => {
    const before = keyrings();
    const living = [];
    for (let round = 0; round < ROUNDS; round++) living.push(await world.establish());
    const fresh = [...keyrings()].filter((serial) => !before.has(serial));
    expect(fresh.length).toBeGreaterThanOrEqual(ROUNDS - 8);
    for (const one of living) await world.end(one);
  });
});
