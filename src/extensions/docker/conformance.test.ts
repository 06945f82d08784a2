/** The suite on a real engine, over both channels: a mounted socket, and a relay that the engine starts. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { startDockerd, whyNoDockerd } from '../../../tests/support/dockerd.ts';
import { describeConformance } from '../../testing/conformance.ts';
import type { DockerOptions } from './config.ts';
import { createDockerExtension } from './index.ts';

spawnSync('sh', [join(import.meta.dirname, '..', '..', '..', 'scripts', 'build-agent.sh')], {
  stdio: 'inherit',
});
const whyNot = whyNoDockerd();

for (const channel of ['call', 'relay'] as const) {
  if (whyNot !== null) {
    describe(`ext.docker (${channel})`, () => {
      it.skip(`cannot be used here: ${whyNot}`, () => {});
    });
    continue;
  }
  describeConformance({ describe, it, beforeAll, afterAll }, `ext.docker (${channel})`, {
    async create() {
      const engine = await startDockerd();
      const options: DockerOptions = {
        url: `unix://${engine.socket}`,
        tls: null,
        directory: join(engine.directory, 'doors'),
        defaultImage: engine.image,
        images: { allow: ['*'], pull: 'never', requireDigest: false, logins: {} },
        network: null,
        channel,
      };
      return { extension: await createDockerExtension(options), cleanup: () => engine.close() };
    },
    graceMs: 20_000,
  });
}
