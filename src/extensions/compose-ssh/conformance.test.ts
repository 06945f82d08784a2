import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { ComposeHost } from '../../../tests/support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../../tests/support/compose-host.ts';
import { describeConformance } from '../../testing/conformance.ts';
import { createComposeExtension } from './create.ts';

// Builds the agent anew: a script that built only missing files would test an old one.
spawnSync('sh', [join(import.meta.dirname, '..', '..', '..', 'scripts', 'build-agent.sh')], {
  stdio: 'inherit',
});

const missing = whyNoComposeHost();
if (missing === null) {
  const host: ComposeHost = await startComposeHost();
  const compose = `services:\n  box:\n    image: ${host.engine.image}\n    command: [sleep, "100000"]\n    init: true\n    working_dir: /root\n`;
  describeConformance({ describe, it, beforeAll, afterAll }, 'ext.compose-ssh', {
    async create() {
      return {
        extension: createComposeExtension({ directory: host.directory }),
        cleanup: async () => await host.close(),
      };
    },
    host: host.host,
    recipe: { inputs: { compose } },
    timeoutMs: 240_000,
  });
} else {
  describe('ext.compose-ssh', () => {
    it.skip(`ext.compose-ssh cannot be tested here: ${missing}`, () => {});
  });
}
