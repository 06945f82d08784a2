/** A host whose network is cut: nothing answers, nothing refuses. Another host beside it goes on. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import { spawnSpec } from '../../../src/testing/conformance/run-program.ts';
import type { ComposeHost } from '../../support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../support/compose-host.ts';
import type { Made } from './compose-world.ts';
import { context, errorOf, establish, output, owned, specFor } from './compose-world.ts';
import { slowRepo } from './slow-repo.ts';

const missing = whyNoComposeHost();
const AWAY = /^SBX_(?:HOST_UNREACHABLE|TIMEOUT)$/;

describe.skipIf(missing !== null)('a host whose network is cut', { timeout: 300_000 }, () => {
  let cut: ComposeHost;
  let other: ComposeHost;
  let extension: ReturnType<typeof createComposeExtension>;
  let neighbour: Made;
  const compose = () => `services: {web: {image: ${cut.engine.image}, init: true, command: [sleep, "9999"]}}`;
  const gone = async (spec: ReturnType<typeof specFor>) => {
    const report = await extension.teardown({ stamp: spec.stamp, handle: null }, context(cut.host));
    expect(report).toMatchObject({ gone: true, remaining: [] });
    expect(await owned(extension, cut.host)).toEqual([]);
    expect(await cut.engine.docker('ps', '-aq')).toBe('');
    expect(await cut.engine.docker('network', 'ls', '--filter', 'type=custom', '-q')).toBe('');
  };
  const unaffected = async () => expect(await output(neighbour.session, 'echo here')).toBe('here');

  beforeAll(async () => {
    [cut, other] = await Promise.all([startComposeHost('cut'), startComposeHost('other')]);
    // So that a silence is noticed within seconds; the directories of both are below their own engine's.
    extension = createComposeExtension({
      directory: '.sandboxer/compose',
      ssh: { aliveSeconds: 3, connectSeconds: 10 },
    });
    neighbour = await establish(extension, other.host, { recipe: { inputs: { compose: compose() } } });
  });

  afterAll(async () => {
    await extension?.close();
    await Promise.all([cut?.close(), other?.close()]);
  });

  it('a network cut during provision is a typed error that admits what may be there, and the sweep finds it', async () => {
    const spec = specFor(extension, { inputs: slowRepo(compose(), () => cut.engine.cutLink()) });
    const error = await errorOf(extension.provision(spec, context(cut.host)));
    expect(error.code).toMatch(AWAY);
    expect(error.extras.creation).toBe('maybe_created');
    await unaffected();
    const late = await errorOf(extension.provision(specFor(extension, {}), context(cut.host)));
    expect(late.extras.creation).toBe('not_created');
    await cut.engine.mendLink();
    expect(await owned(extension, cut.host)).toEqual([spec.stamp.attemptId]);
    await gone(spec);
  });

  it('a connection lost during a program is reported, and the next program uses a new connection', async () => {
    const made = await establish(extension, cut.host, { recipe: { inputs: { compose: compose() } } });
    const running = await made.session.spawn(spawnSpec(['sleep', '60']));
    const ended = running.exit.then(
      () => 'ended',
      () => 'lost',
    );
    await cut.engine.cutLink();
    expect(await ended).toBe('lost');
    await unaffected();
    await cut.engine.mendLink();
    expect(await output(made.session, 'echo again')).toBe('again');
    await gone(made.spec);
  });

  it('a connection lost during teardown leaves the stack unconfirmed, and teardown can be repeated', async () => {
    const { spec, session } = await establish(extension, cut.host, {
      recipe: { inputs: { compose: compose() } },
    });
    await session.close();
    const tearing = errorOf(extension.teardown({ stamp: spec.stamp, handle: null }, context(cut.host)));
    await cut.engine.cutLink();
    expect((await tearing).code).toMatch(AWAY);
    await unaffected();
    await cut.engine.mendLink();
    await gone(spec);
  });
});
