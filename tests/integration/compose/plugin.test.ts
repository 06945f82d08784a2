/** A host with compose as a plugin of `docker` (v2): the real command finds it and hands every call to it. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import { startComposeHost, whyNoComposeHost } from '../../support/compose-host.ts';
import { installComposePlugin } from '../../support/compose-plugin.ts';
import { context, establish, output, owned, repo, specFor } from './compose-world.ts';

it.skipIf(whyNoComposeHost() !== null)(
  'a stack lives its whole life by the plugin',
  { timeout: 180_000 },
  async () => {
    const host = await startComposeHost();
    const plugin = installComposePlugin(join(host.engine.directory, 'client'));
    const extension = createComposeExtension({ directory: host.directory });
    const ctx = context(host.host);
    try {
      expect((await extension.probe(ctx)).detail).toMatch(/compose v2 \(2.24.5\)$/);
      const service = `{image: ${host.engine.image}, command: [sleep, "999"], init: true, volumes: ["data:/data"]}`;
      const inputs = repo({ 'compose.yaml': `services: {a: ${service}}\nvolumes: {data: {}}\n` });
      const secrets = [{ name: 'TOKEN', delivery: 'env' as const, value: 'told' }];
      const secretRefs = [{ name: 'TOKEN', delivery: 'env' as const, provider: 'env' }];
      const made = await establish(extension, host.host, { inputs, secrets, recipe: { secretRefs } });
      expect(await output(made.session, 'echo kept > /data/file; echo $TOKEN')).toBe('told');
      const snapshot = { snapshotId: 'snap_plugin', name: null, owner: 'tests' };
      const { ref } = await extension.snapshot(made.handle, snapshot, ctx);
      const again = specFor(extension, { secrets, recipe: { secretRefs } });
      const restored = await extension.restore(again, ref, ctx);
      await extension.waitReady(restored, ctx);
      const session = await extension.connect(restored, ctx);
      expect(await output(session, 'cat /data/file')).toBe('kept');
      await session.close();
      await made.session.close();
      for (const { stamp } of [made.spec, again])
        expect(await extension.teardown({ stamp, handle: null }, ctx)).toMatchObject({ gone: true });
      await extension.deleteSnapshot(ref, snapshot, ctx);
      expect(await owned(extension, host.host)).toEqual([]);
      const calls = plugin.calls();
      const ups = calls.filter((call) => call.endsWith(' up -d --quiet-pull'));
      expect(ups.length).toBe(2);
      expect(calls.some((call) => call.endsWith(' up --no-start'))).toBe(true);
      expect(calls.join('\n')).not.toContain('told');
    } finally {
      await extension.close();
      await host.close();
    }
  },
);
