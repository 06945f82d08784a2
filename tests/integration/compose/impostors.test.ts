/** A program of a service that listens where the agent did is not taken for it, on a real engine. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import { bytesFrom } from '../../../src/testing/conformance/bytes.ts';
import type { ComposeHost } from '../../support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../support/compose-host.ts';
import { buildDoorCaller } from '../../support/door-caller.ts';
import type { Made } from './compose-world.ts';
import { context, establish, output } from './compose-world.ts';

const missing = whyNoComposeHost();

describe.skipIf(missing !== null)('impostors of the agent of a service', { timeout: 300_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'sbx-impostors-'));
  let host: ComposeHost;
  let extension: ReturnType<typeof createComposeExtension>;
  let made: Made;

  beforeAll(async () => {
    host = await startComposeHost();
    extension = createComposeExtension({ directory: host.directory });
    const compose = `services: {web: {image: ${host.engine.image}, init: true, command: [sleep, "9999"]}}`;
    made = await establish(extension, host.host, { recipe: { inputs: { compose } } });
    const program = readFileSync(buildDoorCaller(directory));
    await made.session.files?.write('/caller', bytesFrom(program), { mode: 0o755 });
  });

  afterAll(async () => {
    await made?.session.close();
    if (made) await extension.teardown({ stamp: made.spec.stamp, handle: null }, context(host.host));
    await extension?.close();
    await host?.close();
    rmSync(directory, { recursive: true });
  });

  it('a later session finds the same agent, and what it runs', async () => {
    const first = await output(made.session, 'echo $PPID');
    const again = await extension.connect(made.handle, context(host.host));
    expect(await output(again, 'echo $PPID')).toBe(first);
    await again.close();
  });

  it('sessions that open at the same time share one agent', async () => {
    const sessions = await Promise.all(
      [1, 2, 3].map(async () => await extension.connect(made.handle, context(host.host))),
    );
    const agents = await Promise.all(sessions.map(async (session) => await output(session, 'echo $PPID')));
    expect(new Set(agents).size).toBe(1);
    for (const session of sessions) await session.close();
  });

  it('an impostor at the path of the agent is sent nothing, and another agent is started', async () => {
    const before = await output(made.session, 'echo $PPID');
    await output(
      made.session,
      [
        'door=$(ls /dev/shm/.sandboxer-agent-* | grep -v lock); mv $door $door.real',
        '(/caller --stand-in $door >/said 2>&1 &)',
        'while ! grep -q listens /said; do sleep 0.1; done',
      ].join('\n'),
    );
    const again = await extension.connect(made.handle, context(host.host));
    expect(await output(again, 'echo $PPID')).not.toBe(before);
    await expect
      .poll(async () => await output(again, 'sort -u /said'), { timeout: 60_000 })
      .toBe('0\nlistens');
    await again.close();
  });
});
