/** A program: the conformance suite on ext.local as whoever runs it, with the options it is given. Its report goes to stdout. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LocalOptions } from '../../src/extensions/local/config.ts';
import { hostCanary } from '../../src/extensions/local/host-canary.ts';
import { createLocalExtension } from '../../src/extensions/local/index.ts';
import { runConformance } from '../../src/testing/conformance.ts';

const options = JSON.parse(process.argv[2] ?? '') as LocalOptions;
const { directory } = options;

const report = await runConformance({
  async create() {
    return {
      extension: createLocalExtension({ lingerMs: 100, ...options }),
      async cleanup() {
        for (let tries = 0; tries < 400 && existsSync(join(directory, 'spawner.sock')); tries++)
          await sleep(25);
      },
    };
  },
  hostSnapshot: async () => hostCanary(directory),
});
process.stdout.write(JSON.stringify(report));
