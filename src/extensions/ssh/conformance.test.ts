import { spawnSync } from 'node:child_process';
import { machine } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { startPlainUserServer, whyNoPlainUser } from '../../../tests/support/plain-user-server.ts';
import type { ConformanceOptions } from '../../testing/conformance/conformance-options.ts';
import { describeConformance } from '../../testing/conformance.ts';
import type { SshServer } from '../../testing/ssh-server.ts';
import { sshServerMissing, startSshServer } from '../../testing/ssh-server.ts';
import { createSshExtension } from './create.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const agents = { [machine()]: join(root, 'agent', 'build', 'sandboxer-agent') };

function conforms(name: string, server: SshServer, recipe: ConformanceOptions['recipe'] = {}): void {
  describeConformance({ describe, it, beforeAll, afterAll }, name, {
    async create() {
      return { extension: createSshExtension({ agents }), cleanup: () => server.stop() };
    },
    host: { id: 'h1', labels: {}, ssh: server.access() },
    recipe,
  });
}

async function suite(
  name: string,
  missing: string | null,
  start: () => Promise<SshServer>,
  recipe?: ConformanceOptions['recipe'],
): Promise<void> {
  if (missing === null) return conforms(name, await start(), recipe);
  describe(name, () => {
    it.skip(`ext.ssh cannot be used here: ${missing}`, () => {});
  });
}

if (sshServerMissing() === null) {
  spawnSync('sh', [join(root, 'scripts', 'build-agent.sh')], { stdio: 'inherit' });
}
await suite('ext.ssh', sshServerMissing(), startSshServer);
await suite('ext.ssh with policy', sshServerMissing() ?? whyNoPlainUser(), startPlainUserServer, {
  isolation: 'policy',
});
