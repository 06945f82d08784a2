/** Images that are not there yet: a real engine pulls from a stand-in that speaks the registry protocol. */
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SandboxerError } from '../../../src/contract/errors/errors.ts';
import type { ImagePolicy } from '../../../src/extensions/docker/containers/options.ts';
import { DockerWorld, output } from '../../support/docker-world.ts';
import type { Dockerd } from '../../support/dockerd.ts';
import { startDockerd, whyNoDockerd } from '../../support/dockerd.ts';
import { Registry } from '../../support/registry.ts';

const whyNot = whyNoDockerd();
const PASSWORD = 'the-password-of-the-puller';

describe.skipIf(whyNot !== null)(
  `pulling images${whyNot ? ` (${whyNot})` : ''}`,
  { timeout: 120_000 },
  () => {
    const registry = new Registry({ login: { username: 'puller', password: PASSWORD } });
    let engine: Dockerd;
    let host: string;

    beforeAll(async () => {
      engine = await startDockerd({ link: true, config: { 'insecure-registries': ['10.0.0.0/8'] } });
      host = `${engine.address.replace(/\.2$/, '.1')}:${await registry.open()}`;
    });
    afterAll(async () => {
      registry.close();
      await engine.close();
    });

    async function worldWith(policy: Partial<ImagePolicy>): Promise<DockerWorld> {
      const login = { username: 'puller', password: async () => PASSWORD };
      const images: ImagePolicy = {
        allow: [`${host}/team/*`],
        pull: 'missing',
        requireDigest: false,
        logins: { [host]: login },
        ...policy,
      };
      const world = new DockerWorld(engine, { images });
      await world.open();
      return world;
    }

    async function refusal(world: DockerWorld, image: string): Promise<SandboxerError> {
      const work = world.extension.provision(world.spec({ image }), world.context);
      const error = await work.then(
        () => null,
        (thrown: SandboxerError) => thrown,
      );
      if (error === null) throw new Error('it was not refused');
      expect(error.extras.creation).toBe('not_created');
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(PASSWORD);
      return error;
    }

    it('an image pull contacts no registry for an image that is not on the list', async () => {
      const world = await worldWith({ allow: ['*'] });
      expect((await refusal(world, `${host}/team/tool:1`)).code).toBe('SBX_UNSUPPORTED');
      expect(registry.asked).toEqual([]);
      await world.extension.close();
    });

    it('an image pull keeps a wrong login and a missing image apart', async () => {
      const without = await worldWith({ logins: {} });
      expect((await refusal(without, `${host}/team/tool:1`)).code).toBe('SBX_IMAGE_UNAVAILABLE');
      await without.extension.close();
      const world = await worldWith({});
      expect((await refusal(world, `${host}/team/tool:2`)).code).toBe('SBX_IMAGE_UNAVAILABLE');
      await world.extension.close();
    });

    it('an image pull takes only the named digest from a registry that sends something else', async () => {
      const world = await worldWith({});
      registry.lies = true;
      const { code, detail } = await refusal(world, `${host}/team/tool@${registry.digest}`);
      registry.lies = false;
      expect({ code, detail }).toEqual({
        code: 'SBX_IMAGE_UNAVAILABLE',
        detail: expect.stringContaining('not what its digest says'),
      });
      expect(await engine.docker('images', '-q', `${host}/team/tool`)).toBe('');
      await world.extension.close();
    });

    it('an image pull requires a digest where the policy says so', async () => {
      const world = await worldWith({ requireDigest: true });
      expect((await refusal(world, `${host}/team/tool:1`)).remedy).toContain('sha256');
      const wrong = `${host}/team/tool@sha256:${'0'.repeat(64)}`;
      expect((await refusal(world, wrong)).code).toBe('SBX_IMAGE_UNAVAILABLE');
      await world.extension.close();
    });

    it('an image is pulled once, by login and digest, with progress, and without the password in any message', async () => {
      const world = await worldWith({ requireDigest: true });
      const said: unknown[] = [];
      const note = (fields: object, message: string) => void said.push({ ...fields, message });
      const log = { debug: note, info: note, warn: note, error: note };
      const spec = world.spec({ image: `${host}/team/tool@${registry.digest}` });
      const handle = await world.extension.provision(spec, { ...world.context, log });
      const living = await world.reach(spec, handle);
      expect(await output(living.session, 'echo pulled')).toBe('pulled');
      expect(said.at(-1)).toMatchObject({ message: 'an image was pulled' });
      const everything = inspect([said, handle, await world.inspect(living)], { depth: 10 });
      expect(everything).not.toContain(PASSWORD);
      const asked = registry.asked.length;
      const second = await world.establish({ image: `${host}/team/tool@${registry.digest}` });
      expect(registry.asked.length).toBe(asked);
      await world.end(second);
      await world.end(living);
      await world.extension.close();
    });

    it('an image pull contacts no registry where the policy is never, and always where it is always', async () => {
      const image = `${host}/team/tool:1`;
      const never = await worldWith({ pull: 'never' });
      const before = registry.asked.length;
      expect((await refusal(never, image)).remedy).toContain(`docker pull ${image}`);
      expect(registry.asked.length).toBe(before);
      await never.extension.close();
      const always = await worldWith({ pull: 'always' });
      await always.end(await always.establish({ image }));
      const once = registry.asked.length;
      await always.end(await always.establish({ image }));
      expect(registry.asked.length).toBeGreaterThan(once);
      await always.extension.close();
    });
  },
);
