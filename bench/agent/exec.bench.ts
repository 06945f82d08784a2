import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Benchmark } from '../harness.ts';
import { measure, summarize } from '../harness.ts';
import { outputBytes, program, startBenchAgent } from './agent-process.ts';

async function plainly(): Promise<void> {
  await once(spawn('/bin/true', { stdio: ['ignore', 'pipe', 'pipe'] }), 'close');
}

export const benchmark: Benchmark = {
  name: 'agent.exec',
  description:
    'Round trips to the agent over a unix socket (targets: /bin/true p50 ≤ 0.7 ms, ping ≤ 0.05 ms); the baseline is child_process.spawn',
  async run(context) {
    const agent = await startBenchAgent();
    const { session } = agent;
    try {
      const n = context.iterations(3000);
      const ping = await measure(n, context.iterations(500), () => session.ping());
      const baseline = await measure(context.iterations(500), context.iterations(50), plainly);
      const exec = await measure(n, context.iterations(200), () =>
        outputBytes(session, program(['/bin/true'])),
      );
      const stat = await measure(n, context.iterations(200), () => session.files.stat('/etc'));
      return [
        summarize({ name: 'agent.ping', unit: 'ms', samples: ping }),
        summarize({
          name: 'agent.exec',
          unit: 'ms',
          samples: exec,
          baseline,
          details: { program: '/bin/true' },
        }),
        summarize({ name: 'agent.stat', unit: 'ms', samples: stat }),
      ];
    } finally {
      await agent.stop();
    }
  },
};
