/** Stacks as people write them start on a real engine: a few of every kind, and all of them where that is asked for. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { createComposeExtension as create } from '../../../src/extensions/compose-ssh/create.ts';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import type { CorpusStack } from '../../support/compose-corpus.ts';
import { imagesNamed, readCorpus } from '../../support/compose-corpus.ts';
import type { ComposeHost } from '../../support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../support/compose-host.ts';
import { nameStandIns } from '../../support/stand-in-images.ts';
import { context, owned, repo, specFor } from './compose-world.ts';

/** All fifty take minutes: `npm run test:whole`. */
const WHOLE = process.env.SANDBOXER_WHOLE === '1';
const FEW = [
  'anchors',
  'configs-and-secrets',
  'include-parts',
  'migrate-then-start',
  'replicas',
  'tmpfs-volumes',
  'volume-forms',
  'web-database-cache',
];

/** What migrates, tests or prepares has ended by then. */
const FINE = /^(?:running|exited \(0\))$/;

const stacks = readCorpus().filter(({ name }) => WHOLE || FEW.includes(name));
const missing = whyNoComposeHost();

/** Its services as they are when it is ready; nothing of it is left afterwards, also when it did not start. */
async function startAndEnd(extension: ReturnType<typeof create>, { host }: ComposeHost, stack: CorpusStack) {
  const inputs = { compose_files: [...stack.composeFiles], env: stack.env, profiles: [...stack.profiles] };
  const spec = specFor(extension, { recipe: { inputs }, inputs: repo(stack.files) });
  try {
    const handle = await extension.provision(spec, context(host));
    const ready = await extension.waitReady(handle, context(host));
    return ready.reachability.services ?? [];
  } finally {
    const { gone } = await extension.teardown({ stamp: spec.stamp, handle: null }, context(host));
    expect(gone).toBe(true);
  }
}

describe.skipIf(missing !== null)('compose: honest stacks start on a real engine', () => {
  let world: ComposeHost;
  let extension: ReturnType<typeof create>;

  beforeAll(async () => {
    world = await startComposeHost();
    extension = createComposeExtension({ directory: world.directory });
    const images = stacks.flatMap((stack) => [...imagesNamed(stack)]);
    await nameStandIns(world.engine, new Set(images));
  });

  afterAll(async () => {
    await extension?.close();
    await world?.close();
  });

  it.each(stacks.map((stack) => [stack.name, stack] as const))('%s', async (_name, stack) => {
    const states = await startAndEnd(extension, world, stack);
    const odd = states.filter(({ state, health }) => !FINE.test(state) || health === 'unhealthy');
    expect(odd).toEqual([]);
    expect(states.some(({ state }) => state === 'running')).toBe(true);
    expect(await owned(extension, world.host)).toEqual([]);
  });
});
