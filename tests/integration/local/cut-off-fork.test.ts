/** A fork of an idle sandbox ends its agent and starts it again: whoever dies in between loses nobody's sandbox. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SpawnerClient } from '../../../src/extensions/local/engine/spawner-client.ts';
import { LocalWorld, shell } from '../../security/local-world.ts';

const world = new LocalWorld({ warm: 0 });
const reason = await world.whyNot();
const FILL = 'mkdir many; i=0; while [ $i -lt 500 ]; do echo $i > many/$i; i=$((i+1)); done';

/** What a server that is killed in the midst of a fork leaves: the disk is a layer, and nobody runs on top of it. */
async function cutOff(attemptId: string): Promise<void> {
  const to = `layers/${attemptId}`;
  mkdirSync(join(world.base, to), { recursive: true });
  const spawner = await SpawnerClient.open(join(world.base, 'spawner.sock'), () => {});
  const { how, layer } = await spawner.call('capture', { id: attemptId, to, seal: 1 });
  spawner.close();
  expect(how).toBe('sealed');
  const path = join(world.base, 'sandboxes', attemptId, 'record.json');
  const record = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify({ ...record, layers: [layer, ...record.layers], sealed: true }));
}

describe.skipIf(reason !== null)(`a fork that was cut off${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(() => world.close(), 60_000);

  it('a fork that was cut off leaves its source, with all its files, to the next request', async () => {
    const { spec, handle, session } = await world.establish({ persistence: 'ephemeral' });
    await shell(session, FILL);
    await session.close();
    await cutOff(spec.stamp.attemptId);
    await world.restart();
    const conditions: (string | undefined)[] = [];
    for await (const { condition } of world.extension.listOwned(spec.stamp.owner)) conditions.push(condition);
    expect(conditions).toEqual(['running']);
    const again = await world.open(spec, handle);
    expect((await shell(again.session, 'ls many | wc -l; touch more')).stdout).toBe('500\n');
    await again.session.close();
    const fork = world.spec({ persistence: 'ephemeral' });
    const forked = await world.open(fork, await world.extension.fork(handle, fork, world.context));
    expect((await shell(forked.session, 'ls many more | wc -l')).stdout).toBe('503\n');
    await world.end(forked);
    const back = await world.open(spec, handle);
    expect((await shell(back.session, 'ls many | wc -l')).stdout).toBe('500\n');
    await world.end(back);
  });
});
