/** Who runs already gets the name of whoever asked: when nobody hears that it has, its ids are still its own. */
import { existsSync, readFileSync, renameSync } from 'node:fs';
import type { Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import type { Living } from '../../security/local-world.ts';
import { LocalWorld } from '../../security/local-world.ts';

const world = new LocalWorld({ warm: 2 });
const reason = await world.whyNot();
const control = join(world.base, 'spawner.sock');
const behind = join(world.base, 'spawner.behind');

/** Between the extension and the spawner: the first answer to a claim is never heard. */
class DeafLine {
  cut = false;
  readonly #ends: Socket[] = [];
  readonly #server = createServer((client) => {
    const spawner = connect(behind);
    let claim: string | undefined;
    this.#ends.push(client, spawner);
    client.on('data', (bytes) => {
      claim ??= /^(\d+)\tclaim\t/m.exec(bytes.toString())?.[1];
      spawner.write(bytes);
    });
    spawner.on('data', (bytes) => {
      const answers = claim !== undefined && new RegExp(`^${claim}\\t`, 'm').test(bytes.toString());
      if (this.cut || !answers) return void client.write(bytes);
      this.cut = true;
      client.destroy();
    });
    for (const end of [client, spawner]) {
      end.on('error', () => {});
      end.on('close', () => [client, spawner].forEach((one) => void one.destroy()));
    }
  });

  async begin(): Promise<void> {
    renameSync(control, behind);
    await new Promise<void>((resolve) => this.#server.listen(control, resolve));
  }

  end(): void {
    this.#server.close();
    for (const end of this.#ends) end.destroy();
    renameSync(behind, control);
  }
}

function rangeOf(attemptId: string): number {
  return JSON.parse(readFileSync(join(world.base, 'sandboxes', attemptId, 'record.json'), 'utf8')).range;
}

describe.skipIf(reason !== null)(`a claim that was cut off${reason === null ? '' : ` (${reason})`}`, () => {
  const line = new DeafLine();
  afterAll(async () => {
    if (existsSync(behind)) line.end();
    await world.close();
  }, 60_000);

  it('a claim that was cut off fails its attempt, and its ids stay reserved until it is gone', async () => {
    const living: Living[] = [await world.establish()];
    await world.restart();
    await line.begin();
    let spec = world.spec();
    let failure: unknown = null;
    for (let tries = 0; tries < 100 && !line.cut; tries++) {
      spec = world.spec();
      const made = world.extension.provision(spec, world.context);
      failure = await made.then(
        () => null,
        (error: unknown) => error,
      );
      if (line.cut) break;
      await world.extension.waitReady(await made, world.context);
      await world.extension.teardown({ stamp: spec.stamp, handle: await made }, world.context);
      await sleep(50);
    }
    expect(line.cut).toBe(true);
    expect(failure).toMatchObject({ code: 'SBX_EXTENSION_FAILED' });
    expect(failure).not.toMatchObject({ creation: 'not_created' });
    const held = rangeOf(spec.stamp.attemptId);
    for (let n = 0; n < 6; n++) living.push(await world.establish());
    const ranges = living.map((one) => rangeOf(one.spec.stamp.attemptId));
    expect(ranges).not.toContain(held);
    expect(new Set(ranges).size).toBe(ranges.length);
    const report = await world.extension.teardown({ stamp: spec.stamp, handle: null }, world.context);
    expect(report).toMatchObject({ gone: true, remaining: [] });
    for (const one of living) await world.end(one);
    line.end();
  }, 60_000);
});
