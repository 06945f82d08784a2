/** Programs of the sandbox's own user that call where its agent does: they are not answered, on a real engine. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bytesFrom } from '../../../src/testing/conformance/bytes.ts';
import type { LivingContainer } from '../../support/docker-world.ts';
import { DockerWorld, output } from '../../support/docker-world.ts';
import { whyNoDockerd } from '../../support/dockerd.ts';
import { buildDoorCaller } from '../../support/door-caller.ts';

const whyNot = whyNoDockerd();
/** Where the socket is looked for: at its path, and where it lay before. */
const PATHS = ['/.sandboxer/door/in/h.sock', '/.sandboxer/door/h.sock'];

describe.skipIf(whyNot !== null)(
  `impostors of the agent${whyNot ? ` (${whyNot})` : ''}`,
  { timeout: 120_000 },
  () => {
    const directory = mkdtempSync(join(tmpdir(), 'sbx-impostors-'));
    let caller: Buffer;
    let world: DockerWorld;

    beforeAll(async () => {
      caller = readFileSync(buildDoorCaller(directory));
      world = await DockerWorld.start();
    });
    afterAll(async () => {
      await world?.close();
      rmSync(directory, { recursive: true });
    });

    async function establish(...given: Parameters<DockerWorld['establish']>): Promise<LivingContainer> {
      const living = await world.establish(...given);
      await living.session.files?.write('caller', bytesFrom(caller), { mode: 0o755 });
      return living;
    }

    async function called(session: LivingContainer['session']): Promise<string[]> {
      const answers = await Promise.all(PATHS.map((path) => output(session, `./caller ${path} 2000`)));
      return [...new Set(answers)];
    }

    it('a program of the same user is neither greeted nor sent a secret', async () => {
      const living = await establish();
      expect(await world.inspect(living)).toMatchObject({
        Config: { User: '1000:1000', Labels: { 'io.sandboxer.channel': 'call' } },
      });
      expect(await called(living.session)).toEqual(['0 0']);
      expect(await output(living.session, 'find /.sandboxer/door -mindepth 1')).toBe('');
      expect(await output(living.session, './caller --first-process')).toBe('0');
      await world.end(living);
    });

    it('a program that calls all the time gets nothing when a new server takes the sandbox over', async () => {
      const living = await establish();
      const loop = `while [ ! -e stop ]; do for path in ${PATHS.join(' ')}; do ./caller $path 500; done; done >calls`;
      await output(living.session, `(${loop}) >/dev/null 2>&1 &`);
      await living.session.close();
      await world.restart();
      const session = await world.extension.connect(living.handle, world.context);
      expect(await output(session, 'echo mine')).toBe('mine');
      expect(await output(session, 'touch stop; sleep 2; sort -u calls')).toBe('0 0');
      await world.end({ ...living, session });
    });

    it('a kept sandbox that starts again is answered by its new agent alone', async () => {
      const living = await establish({ persistence: 'persistent' });
      const { container } = living.handle.data as { container: string };
      await living.session.close();
      await world.engine.docker('stop', '--time', '0', container);
      const session = await world.extension.connect(living.handle, world.context);
      expect(await output(session, 'echo mine')).toBe('mine');
      expect(await called(session)).toEqual(['0 0']);
      await world.end({ ...living, session });
    });

    it('a sandbox restarted by another client is not answered by a path', async () => {
      const living = await establish({ persistence: 'persistent' });
      const { container } = living.handle.data as { container: string };
      await living.session.close();
      await world.engine.docker('restart', '--time', '0', container);
      // The restarted agent found no door and has ended; the next use starts the container with one.
      await expect
        .poll(
          async () =>
            (await world.engine.docker('inspect', '--format', '{{.State.Running}}', container)).trim(),
          {
            timeout: 30_000,
          },
        )
        .toBe('false');
      const session = await world.extension.connect(living.handle, world.context);
      expect(await output(session, 'echo mine')).toBe('mine');
      await world.end({ ...living, session });
    });
  },
);
