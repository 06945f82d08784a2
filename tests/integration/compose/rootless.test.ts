/** Stacks on a real rootless engine of the ssh user, beside the engine of root. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/index.ts';
import { ownAgents } from '../../../src/extensions/shared/own-programs.ts';
import type { RootlessHost } from '../../support/rootless-host.ts';
import { startRootlessHost, whyNoRootlessHost } from '../../support/rootless-host.ts';
import type { SpecParts } from './compose-world.ts';
import { context, errorOf, output, owned, repo, specFor } from './compose-world.ts';

const missing = whyNoRootlessHost();
if (missing !== null) describe.skip(`compose: rootless engines: ${missing}`, () => it('', () => {}));

describe.skipIf(missing !== null)('compose: rootless engines', { timeout: 300_000 }, () => {
  let host: RootlessHost;
  let open: ReturnType<typeof createComposeExtension>[] = [];
  const extension = (options: Parameters<typeof createComposeExtension>[0] = {}) => {
    const made = createComposeExtension({ directory: host.directory, ...options });
    open.push(made);
    return made;
  };
  const close = async () => {
    for (const one of open) await one.close();
    open = [];
  };
  const make = async (made: ReturnType<typeof createComposeExtension>, parts: SpecParts) => {
    const spec = specFor(made, parts);
    const handle = await made.provision(spec, context(host.host));
    const ready = await made.waitReady(handle, context(host.host));
    return { spec, handle, ready, session: await made.connect(handle, context(host.host)) };
  };
  const stack = (text = '') => ({
    inputs: repo({
      'compose.yaml': `services: {a: {image: "${host.engine.image}", user: "0:0", init: true, command: [sleep, "9999"], volumes: [".:/src", "v:/v"]${text}}}\nvolumes: {v: {}}`,
    }),
  });
  const recordsOf = () => {
    const stacks = join(host.directory, 'stacks');
    return readdirSync(stacks).map((name) => readFileSync(join(stacks, name, 'engine'), 'utf8').trim());
  };
  const socket = () => `unix://${join(host.home, '..', 'run', 'docker.sock')}`.replace('home/../', '');

  beforeAll(async () => {
    host = await startRootlessHost();
  });
  afterAll(async () => {
    await close();
    await host?.close();
  });

  it('compose: without a rootless engine stacks run on the engine of root, which is recorded', async () => {
    const made = extension();
    expect((await made.probe(context(host.host))).detail).toContain('rootless: none');
    const living = await make(made, stack());
    expect(recordsOf()).toEqual(['rootful -']);
    expect(living.ready.notes.join(' ')).toContain('For stacks you trust');
    await made.teardown({ stamp: living.spec.stamp, handle: null }, context(host.host));
    await close();
  });
});
