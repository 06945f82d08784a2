import { join } from 'node:path';
import { builtCommand } from '../../tests/support/built-package.ts';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
import { runCommand } from '../command-time.ts';
import type { Benchmark } from '../harness.ts';
import { measure, summarize } from '../harness.ts';

export const benchmark: Benchmark = {
  name: 'cli.list',
  description:
    '`sandboxer list` of the built package against a running server, compared with `node -e 0` (target ratio ≤ 2)',
  async run(context) {
    const main = builtCommand();
    const dir = temporaryDir();
    const server = await startChild(join(import.meta.dirname, '..', 'control', 'control-server.ts'), dir);
    const env = { ...process.env, SANDBOXER_URL: `unix:${server.socketPath}` };
    try {
      const list = () => runCommand(process.execPath, [main, 'list'], env);
      const bare = () => runCommand(process.execPath, ['-e', '0'], env);
      const samples: number[] = [];
      const baseline: number[] = [];
      for (let round = 0; round < 4; round++) {
        baseline.push(...(await measure(context.iterations(10), 1, bare)));
        samples.push(...(await measure(context.iterations(10), 1, list)));
      }
      samples.sort((a, b) => a - b);
      baseline.sort((a, b) => a - b);
      return [summarize({ name: 'cli.list', unit: 'ms', samples, baseline })];
    } finally {
      await server.stop();
      removeDir(dir);
    }
  },
};
