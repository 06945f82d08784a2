/** A pause of a sandbox in which something waits for a disk, and cannot stop before it has it: nobody else waits for that. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SpawnerClient } from '../../../src/extensions/local/engine/spawner-client.ts';
import { findHostFacts } from '../../../src/extensions/local/host/host-facts.ts';
import { LocalWorld, shell } from '../../security/local-world.ts';
import { stateOf, until } from './killable-server.ts';

const world = new LocalWorld({ launchers: 1, warm: 0 });
const LIMIT_MS = 60_000;

/** A disk that answers nobody while the file system below it is held: two of them, one inside the other. */
class HeldDisk {
  readonly #place = mkdtempSync(join(tmpdir(), 'sbx-held-'));
  readonly #below = join(this.#place, 'below');
  readonly device: string;

  constructor() {
    const image = join(this.#place, 'image');
    mkdirSync(this.#below);
    execFileSync('truncate', ['-s', '16M', image]);
    execFileSync('mkfs.ext4', ['-q', image]);
    execFileSync('mount', ['-o', 'loop', image, this.#below]);
    execFileSync('truncate', ['-s', '4M', join(this.#below, 'image')]);
    const made = execFileSync('losetup', ['-f', '--show', join(this.#below, 'image')]);
    this.device = made.toString().trim();
  }

  hold(held: boolean): void {
    execFileSync('fsfreeze', [held ? '-f' : '-u', this.#below], { stdio: 'ignore' });
  }

  remove(): void {
    try {
      this.hold(false);
    } catch {
      // It was not held.
    }
    execFileSync('losetup', ['-d', this.device]);
    execFileSync('umount', [this.#below]);
    rmSync(this.#place, { recursive: true });
  }
}

function heldDisk(): HeldDisk | null {
  try {
    return new HeldDisk();
  } catch {
    return null;
  }
}

const { unified } = findHostFacts({ directory: world.base });
const notHere = unified === null && process.getuid?.() === 0 ? null : 'only who is root, and version 1';
const reason = (await world.whyNot()) ?? notHere;
const disk = reason === null ? heldDisk() : null;

describe.skipIf(disk === null)(`a pause that takes long${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(async () => {
    disk?.remove();
    await world.close();
  }, LIMIT_MS);

  it(
    'a slow pause blocks no other call, ends when everything has stopped, and is given up after a limit',
    async () => {
      const living = await world.establish();
      const id = living.spec.stamp.attemptId;
      const client = await SpawnerClient.open(join(world.base, 'spawner.sock'), () => {});
      const { group_freezer } = await client.call('inspect', { id });
      for (const patient of [true, false]) {
        disk?.hold(true);
        const writer = spawn('dd', [
          'if=/dev/zero',
          `of=${disk?.device}`,
          'bs=4096',
          'count=1',
          'oflag=direct',
        ]);
        await until('it waits for the disk', () => stateOf(writer.pid as number) === 'D' || null);
        writeFileSync(join(String(group_freezer), 'cgroup.procs'), String(writer.pid));
        const begun = Date.now();
        const paused = client.call('freeze', { id }).then(
          () => 'paused',
          (error: Error) => error.message,
        );
        await client.call('hello');
        expect(Date.now() - begun).toBeLessThan(1_000);
        expect(readFileSync(join(String(group_freezer), 'freezer.state'), 'utf8')).toBe('FREEZING\n');
        if (patient) disk?.hold(false);
        expect(await paused).toBe(patient ? 'paused' : 'the kernel did not freeze it');
        if (patient) await client.call('thaw', { id });
        else disk?.hold(false);
        await until('it has written', () => stateOf(writer.pid as number) === '' || null);
        expect((await shell(living.session, 'echo here')).stdout).toBe('here\n');
      }
      client.close();
      await world.end(living);
    },
    LIMIT_MS,
  );
});
