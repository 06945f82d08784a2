/** A program of the sandbox's own user that listens where its agent did is not taken for it, on a real engine. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bytesFrom } from '../../../src/testing/conformance/bytes.ts';
import { DockerWorld, output } from '../../support/docker-world.ts';
import { whyNoDockerd } from '../../support/dockerd.ts';
import { buildDoorCaller } from '../../support/door-caller.ts';

const whyNot = whyNoDockerd();

describe.skipIf(whyNot !== null)(
  `impostors of the agent behind a relay${whyNot ? ` (${whyNot})` : ''}`,
  { timeout: 120_000 },
  () => {
    const directory = mkdtempSync(join(tmpdir(), 'sbx-impostors-'));
    let world: DockerWorld;

    beforeAll(async () => {
      world = await DockerWorld.start({ channel: 'relay' });
    });
    afterAll(async () => {
      await world?.close();
      rmSync(directory, { recursive: true });
    });

    it('a program that listens in the place of the agent is sent nothing', async () => {
      const living = await world.establish();
      const program = readFileSync(buildDoorCaller(directory));
      await living.session.files?.write('caller', bytesFrom(program), { mode: 0o755 });
      const script = [
        'mv /run/sandboxer/a.sock /run/sandboxer/real',
        '(./caller --stand-in /run/sandboxer/a.sock >said 2>&1 &)',
        'while ! grep -q listens said; do sleep 0.1; done',
      ].join('\n');
      await output(living.session, script);
      const abort = new AbortController();
      const work = world.extension.connect(living.handle, world.contextWith(abort.signal));
      work.catch(() => {});
      // Relayed to three times at least, and each time turned away from.
      const said = async () => (await output(living.session, 'cat said')).split('\n');
      await expect.poll(async () => (await said()).length, { timeout: 60_000 }).toBeGreaterThan(3);
      abort.abort();
      await expect(work).rejects.toMatchObject({ name: 'SandboxerError' });
      expect([...new Set(await said())]).toEqual(['listens', '0']);
      await output(living.session, 'mv /run/sandboxer/real /run/sandboxer/a.sock');
      const session = await world.extension.connect(living.handle, world.context);
      expect(await output(session, 'echo mine')).toBe('mine');
      await world.end({ ...living, session });
    });
  },
);
