import { builtCommand } from '../../tests/support/built-package.ts';
import { runCommand } from '../command-time.ts';
import type { Benchmark } from '../harness.ts';
import { measure, summarize } from '../harness.ts';

export const benchmark: Benchmark = {
  name: 'cli.help',
  description: '`sandboxer --help` of the built package against `node -e 0` (target ratio ≤ 1.5)',
  async run(context) {
    const main = builtCommand();
    const help = () => runCommand(process.execPath, [main, '--help'], process.env);
    const bare = () => runCommand(process.execPath, ['-e', '0'], process.env);
    const samples: number[] = [];
    const baseline: number[] = [];
    for (let round = 0; round < 4; round++) {
      baseline.push(...(await measure(context.iterations(10), 1, bare)));
      samples.push(...(await measure(context.iterations(10), 1, help)));
    }
    samples.sort((a, b) => a - b);
    baseline.sort((a, b) => a - b);
    return [summarize({ name: 'cli.help', unit: 'ms', samples, baseline })];
  },
};
