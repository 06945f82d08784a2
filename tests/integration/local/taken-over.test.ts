/** What a new server finds of a sandbox that an earlier one had started. */
import { afterAll, describe, expect, it } from 'vitest';
import { LocalWorld, shell } from '../../security/local-world.ts';

const world = new LocalWorld();
const reason = await world.whyNot();
const LIMIT_MS = 120_000;

describe.skipIf(reason !== null)(`taken over${reason === null ? '' : ` (${reason})`}`, () => {
  afterAll(() => world.close(), LIMIT_MS);

  it(
    'a sandbox taken over gets its secrets when the earlier server died before it had them',
    async () => {
      const secrets = [
        { name: 'TOKEN', delivery: 'env' as const, value: 'said' },
        { name: 'KEY', delivery: 'file' as const, value: 'kept' },
      ];
      const { spec, session } = await world.establish({}, { secrets });
      // As if they had not arrived.
      await shell(session, 'rm /run/secrets/KEY /run/secrets/.environment', 'root');
      await session.close();
      await world.restart();
      const again = await world.open(spec, await world.extension.provision(spec, world.context));
      expect((await shell(again.session, 'echo $TOKEN; cat /run/secrets/KEY')).stdout).toBe('said\nkept');
      await world.end(again);
    },
    LIMIT_MS,
  );

  it.skipIf(!world.extension.header.capabilities.resources.includes('memory_mb'))(
    'a sandbox taken over is not reported out of memory because it once was',
    async () => {
      const { resources } = world.spec().recipe;
      const { spec, handle, session } = await world.establish({
        resources: { ...resources, memory_mb: 48 },
      });
      const eat = 'head -c 200000000 /dev/zero | tail';
      const killed = async (script: string, by = session) => (await shell(by, script)).exit;
      const eater = `exec sh -c '${eat}; kill -9 $$'`;
      expect(await killed(eater)).toMatchObject({ code: 137, out_of_memory: true });
      expect(await killed('kill -9 $$')).toMatchObject({ code: 137, out_of_memory: false });
      await session.close();
      await world.restart();
      const again = await world.open(spec, handle);
      expect(await killed('kill -9 $$', again.session)).toMatchObject({ code: 137, out_of_memory: false });
      expect(await killed(eater, again.session)).toMatchObject({ code: 137, out_of_memory: true });
      await world.end(again);
    },
    LIMIT_MS,
  );
});
