/**
 * Runs in a mount namespace of its own, with its temporary directory on the file system under test: snapshots and forks of
 * an idle and of a busy sandbox. Prints what it found as JSON.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawnSpec } from '../../src/testing/conformance/run-program.ts';
import type { Living } from './local-world.ts';
import { LocalWorld, shell } from './local-world.ts';

const FILES = Number(process.argv[2] ?? 500);
const world = new LocalWorld();
const reason = await world.whyNot();
const LOOK = 'ls d | wc -l; cat d/* | sha256sum; stat -c %a:%U d; test -e /etc/hosts || echo removed';

async function forked(source: Living): Promise<{ look: string; ms: number; layers: string[] }> {
  const begun = performance.now();
  const spec = world.spec();
  const fork = await world.open(spec, await world.extension.fork(source.handle, spec, world.context));
  const ms = performance.now() - begun;
  const { stdout } = await shell(fork.session, LOOK);
  const record = readFileSync(join(world.base, 'sandboxes', spec.stamp.attemptId, 'record.json'), 'utf8');
  await shell(fork.session, 'rm -r d');
  await world.end(fork);
  return { look: stdout, ms, layers: JSON.parse(record).layers };
}

const found: Record<string, unknown> = { reason };
try {
  if (reason === null) {
    const source = await world.establish();
    await shell(
      source.session,
      `mkdir d; i=0; while [ $i -lt ${FILES} ]; do head -c 20000 /dev/urandom > d/$i; i=$((i+1)); done; chmod 750 d`,
    );
    await shell(source.session, 'rm /etc/hosts', 'root');
    found.source = (await shell(source.session, LOOK)).stdout;
    const writer = await source.session.spawn(
      spawnSpec(['/bin/sh', '-c', 'while :; do date > busy; sleep 0.01; done'], { background: true }),
    );
    found.busy = await forked(source);
    await writer.kill('SIGKILL');
    await writer.exit;
    await world.end(source);
    const idle = await world.establish();
    await shell(
      idle.session,
      `mkdir d; i=0; while [ $i -lt ${FILES} ]; do echo $i > d/$i; i=$((i+1)); done; chmod 750 d`,
    );
    await shell(idle.session, 'rm /etc/hosts', 'root');
    found.idleSource = (await shell(idle.session, LOOK)).stdout;
    found.idle = await forked(idle);
    const spec = { snapshotId: 'snap_fs', name: null, owner: 'local-tests' };
    const { ref } = await world.extension.snapshot(idle.handle, spec);
    await world.end(idle);
    const again = world.spec();
    const restored = await world.open(again, await world.extension.restore(again, ref, world.context));
    found.restored = (await shell(restored.session, LOOK)).stdout;
    await world.end(restored);
    await world.extension.deleteSnapshot(ref, spec);
    for (let tries = 0; tries < 200 && readdirSync(join(world.base, 'layers')).length > 0; tries++)
      await sleep(25);
    found.layersLeft = readdirSync(join(world.base, 'layers')).length;
  }
} finally {
  await world.close();
}
process.stdout.write(JSON.stringify(found));
