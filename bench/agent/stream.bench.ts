import { spawn } from 'node:child_process';
import type { Benchmark, BenchmarkContext } from '../harness.ts';
import { summarize } from '../harness.ts';
import { outputBytes, program, startBenchAgent } from './agent-process.ts';

const MEGABYTE = 1_048_576;

async function megabytesPerSecond(rounds: number, work: () => Promise<number>): Promise<number[]> {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const startedAt = performance.now();
    const bytes = await work();
    samples.push(bytes / MEGABYTE / ((performance.now() - startedAt) / 1000));
  }
  return samples.sort((a, b) => a - b);
}

async function plainly(size: number): Promise<number> {
  const child = spawn('head', ['-c', String(size), '/dev/zero'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let bytes = 0;
  for await (const chunk of child.stdout) bytes += chunk.length;
  return bytes;
}

async function* zeros(size: number): AsyncGenerator<Uint8Array> {
  const piece = Buffer.alloc(262_144);
  for (let left = size; left > 0; left -= piece.length) yield piece.subarray(0, Math.min(left, piece.length));
}

function sizeFor(context: BenchmarkContext): number {
  return (context.smoke ? 8 : 1024) * MEGABYTE;
}

export const benchmark: Benchmark = {
  name: 'agent.stream',
  description:
    'Bytes through the agent over a unix socket (stdout ≥ 400 MB/s); the baseline is a pipe of child_process.spawn',
  async run(context) {
    const agent = await startBenchAgent();
    const { session } = agent;
    const size = sizeFor(context);
    const rounds = context.iterations(5);
    try {
      const baseline = await megabytesPerSecond(rounds, () => plainly(size));
      const stdout = await megabytesPerSecond(rounds, () =>
        outputBytes(session, program(['head', '-c', String(size), '/dev/zero'])),
      );
      const write = await megabytesPerSecond(rounds, async () => {
        return (await session.files.write('written', zeros(size / 4))).size;
      });
      const read = await megabytesPerSecond(rounds, async () => {
        let bytes = 0;
        for await (const chunk of (await session.files.read('written')).body) bytes += chunk.length;
        return bytes;
      });
      const unit = 'MB/s';
      return [
        summarize({ name: 'agent.stream.stdout', unit, samples: stdout, baseline }),
        summarize({ name: 'agent.stream.file-write', unit, samples: write }),
        summarize({ name: 'agent.stream.file-read', unit, samples: read }),
      ];
    } finally {
      await agent.stop();
    }
  },
};
