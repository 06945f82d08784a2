/** A disk that is thrown away with its sandbox is never waited for; one that is kept is. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import type { Living } from '../../security/local-world.ts';
import { LocalWorld, shell } from '../../security/local-world.ts';

const world = new LocalWorld({ warm: 0 });
const reason = await world.whyNot();

async function overlays({ session }: Living): Promise<string[]> {
  const { stdout } = await shell(session, 'grep " overlay " /proc/self/mounts');
  return stdout.trim().split('\n');
}

describe.skipIf(reason !== null)(`disks${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(() => world.close());

  it('disks of an ephemeral sandbox are not flushed, those of a persistent one are', async () => {
    const ephemeral = await world.establish({ persistence: 'ephemeral' });
    const persistent = await world.establish({ persistence: 'persistent' });
    for (const line of await overlays(ephemeral)) expect(line).toMatch(/[,=]volatile[ ,]/);
    for (const line of await overlays(persistent)) expect(line).not.toMatch(/[,=]volatile[ ,]/);
    await world.end(ephemeral);
    await world.end(persistent);
  });

  it('disks that are not flushed can be used again while the machine is up', async () => {
    const living = await world.establish({ persistence: 'ephemeral' });
    const { spec } = living;
    expect((await shell(living.session, 'echo here > file && touch /usr/local/there', '0')).code).toBe(0);
    await living.session.close();
    const run = join(world.base, 'sandboxes', spec.stamp.attemptId, 'run');
    process.kill(Number(readFileSync(run, 'utf8').split(' ')[3]), 'SIGKILL');
    for (let tries = 0; tries < 3_000 && !readFileSync(run, 'utf8').includes(' dead '); tries++)
      await sleep(10);
    const again = await world.open(spec, await world.extension.provision(spec, world.context));
    expect((await shell(again.session, 'cat file; ls /usr/local/there', '0')).stdout).toBe(
      'here\n/usr/local/there\n',
    );
    for (const line of await overlays(again)) expect(line).toMatch(/[,=]volatile[ ,]/);
    await world.end(again);
  });
});
