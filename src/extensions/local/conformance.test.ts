import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { describeConformance } from '../../testing/conformance.ts';
import { createLocalExtension } from './create.ts';
import { hostCanary } from './host/host-canary.ts';

// Builds the programs anew: a script that built only missing files would test old ones.
for (const script of ['build-agent.sh', 'build-spawner.sh']) {
  spawnSync('sh', [join(import.meta.dirname, '..', '..', '..', 'scripts', script)], { stdio: 'inherit' });
}
const directory = mkdtempSync(join(tmpdir(), 'sandboxer-local-'));
const extension = createLocalExtension({ directory: join(directory, 'local'), lingerMs: 100 });
const { status, detail } = await extension.probe({
  signal: new AbortController().signal,
  clock: { now: () => Date.now(), sleep: async (ms) => void (await sleep(ms)) },
  log: { debug() {}, info() {}, warn() {}, error() {} },
  host: null,
});

if (status === 'healthy') {
  describeConformance({ describe, it, beforeAll, afterAll }, 'ext.local', {
    async create() {
      return {
        extension,
        async cleanup() {
          const socket = join(directory, 'local', 'spawner.sock');
          for (let tries = 0; tries < 2_400 && existsSync(socket); tries++) await sleep(25);
          rmSync(directory, { recursive: true });
        },
      };
    },
    hostSnapshot: async () => hostCanary(join(directory, 'local')),
  });
} else {
  describe('ext.local', () => {
    it.skip(`ext.local cannot be used here: ${detail}`, () => {});
  });
}
