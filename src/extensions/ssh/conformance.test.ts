import { spawnSync } from 'node:child_process';
import { machine } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { describeConformance } from '../../testing/conformance.ts';
import { sshServerMissing, startSshServer } from '../../testing/ssh-server.ts';
import { createSshExtension } from './index.ts';

const missing = sshServerMissing();

if (missing === null) {
  const root = join(import.meta.dirname, '..', '..', '..');
  spawnSync('sh', [join(root, 'scripts', 'build-agent.sh')], { stdio: 'inherit' });
  const server = await startSshServer();
  const agents = { [machine()]: join(root, 'agent', 'build', 'sandboxer-agent') };
  describeConformance({ describe, it, beforeAll, afterAll }, 'ext.ssh', {
    async create() {
      return { extension: createSshExtension({ agents }), cleanup: () => server.stop() };
    },
    host: { id: 'h1', labels: {}, ssh: server.access() },
    abortWithinMs: 10_000,
  });
} else {
  describe('ext.ssh', () => {
    it.skip(`cannot be used here: ${missing}`, () => {});
  });
}
