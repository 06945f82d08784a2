/** Levels above a container on a real engine: what its runtimes really give is offered, and nothing else. */
import { existsSync } from 'node:fs';
import { release } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseEndpoint } from '../../../src/extensions/docker/engine/endpoint.ts';
import { EngineClient } from '../../../src/extensions/docker/engine/engine-client.ts';
import { engineConnector } from '../../../src/extensions/docker/engine/engine-connector.ts';
import { findEngineFacts } from '../../../src/extensions/docker/engine/engine-facts.ts';
import type { Levels } from '../../../src/extensions/docker/inspect/levels.ts';
import { findLevels } from '../../../src/extensions/docker/inspect/levels.ts';
import { DockerWorld, output } from '../../support/docker-world.ts';
import { whyNoDockerd } from '../../support/dockerd.ts';

const RUNSC = '/usr/bin/runsc';
const RUNC = ['/usr/sbin/runc', '/usr/bin/runc'].find((path) => existsSync(path));
const whyNot = whyNoDockerd() ?? (existsSync(RUNSC) && RUNC ? null : `${RUNSC} is not installed`);
const AGENT = new URL('../../../agent/build/sandboxer-agent', import.meta.url).pathname;

const runtimes = {
  runsc: { path: RUNSC, runtimeArgs: ['--ignore-cgroups', '--network=none'] },
  // Shares the kernel, whatever it is called.
  kata: { path: RUNC },
  // As one finds it after apt-get install: it cannot have a network here, and so does not start.
  'kata-fc': { path: RUNSC, runtimeArgs: ['--ignore-cgroups', '--network=sandbox'] },
};

describe.skipIf(whyNot !== null)(
  `isolation levels by runtimes${whyNot ? ` (${whyNot})` : ''}`,
  { timeout: 120_000 },
  () => {
    let world: DockerWorld;

    beforeAll(async () => {
      world = await DockerWorld.start({}, { config: { runtimes } });
    });
    afterAll(() => world.close());

    async function tried(...names: string[]): Promise<Levels> {
      const client = new EngineClient(engineConnector(parseEndpoint(world.options.url, null)));
      try {
        const facts = { ...(await findEngineFacts(client)), runtimes: names };
        return await findLevels({ client, facts, options: world.options, agentPath: AGENT });
      } finally {
        await client.close();
      }
    }

    it('the level with its own kernel is offered, by the runtime that gives it', async () => {
      const { capabilities } = world.extension.header;
      expect(capabilities.isolation).toEqual(['container', 'gvisor']);
      expect(await world.engine.docker('ps', '--all', '--quiet')).toBe('');
      const living = await world.establish({ isolation: 'gvisor' });
      expect(await world.inspect(living)).toMatchObject({
        HostConfig: { Runtime: 'runsc' },
        Config: { Labels: { 'io.sandboxer.channel': 'relay' } },
      });
      const version = await output(living.session, 'cat /proc/version');
      expect(version).toMatch(/^Linux version /);
      expect(version).not.toContain(`version ${release()} `);
      const facts = await world.extension.inspectIsolation(living.handle, world.context);
      expect(facts).toMatchObject({ level: 'gvisor', runtime: { name: 'runsc' } });
      expect(facts.kernel).toMatch(/^\d/);
      expect(facts.kernel).not.toBe(release());
      await world.end(living);
    });

    it('a level whose runtime has only the right name is refused, with the reason', async () => {
      expect(world.extension.header.remedies?.microvm).toContain('it shares the kernel');
      const refused = world.extension.provision(world.spec({ isolation: 'microvm' }), world.context);
      await expect(refused).rejects.toMatchObject({
        code: 'SBX_UNSUPPORTED',
        detail: expect.stringContaining('it shares the kernel'),
        extras: { creation: 'not_created' },
      });
      const { checks } = await world.extension.probe(world.context);
      const found = Object.fromEntries(checks.map(({ name, ok, fix }) => [name, { ok, fix }]));
      expect(found.gvisor).toEqual({ ok: true, fix: null });
      expect(found.microvm).toEqual({ ok: false, fix: expect.stringContaining('/dev/kvm') });
    });

    it('a level whose runtime does not start or is missing is not offered', async () => {
      const { offered, lacking } = await tried('kata-fc');
      expect([...offered]).toEqual([]);
      expect(lacking.get('microvm')?.reason).toContain('kata-fc cannot be used: The engine says');
      expect(lacking.get('gvisor')).toEqual({
        reason: 'The engine has no runtime runsc',
        remedy: expect.stringContaining('runsc install'),
      });
      expect(await world.engine.docker('ps', '--all', '--quiet')).toBe('');
    });
  },
);
