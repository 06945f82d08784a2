import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';
import { ascending, skipped, timed, whyNot, withWorld } from './world.ts';

const FILL = (files: number, kb: number) =>
  `mkdir -p data; i=0; while [ $i -lt ${files} ]; do head -c ${kb * 1024} /dev/zero > data/$i; i=$((i+1)); done; sync`;

export const benchmark: Benchmark = {
  name: 'local.fork',
  description:
    'fork of a sandbox: nothing runs in it, 200 MB in 2,000 files (target ≤ 2.2× local.create); and busy (the delta is copied)',
  async run(context) {
    const reason = whyNot();
    if (reason !== null) return skipped('local.fork', reason);
    return await withWorld({}, 2, async (world) => {
      const creates: number[] = [];
      for (let n = 0; n < context.iterations(50); n++)
        await world.destroy(await timed(creates, () => world.create()));
      const files = context.smoke ? 10 : 2000;
      const source = await world.create();
      await world.exec(source, ['/bin/sh', '-c', FILL(files, 100)]);
      const fork = async () => {
        const { sandbox_id } = await world.client.expect<{ sandbox_id: string }>(
          201,
          'POST',
          `/v1/sandboxes/${source}/fork`,
          {},
        );
        return sandbox_id;
      };
      const idle: number[] = [];
      for (let n = 0; n < context.iterations(10); n++) {
        await world.exec(source, ['/bin/sh', '-c', `echo ${n} > changed`]);
        await world.destroy(await timed(idle, fork));
      }
      await world.client.expect(202, 'POST', `/v1/sandboxes/${source}/exec`, {
        command: ['/bin/sh', '-c', 'while :; do date > busy; sleep 0.01; done'],
        background: true,
      });
      await world.exec(source, ['/bin/sh', '-c', FILL(Math.min(files, 100), 100)]);
      const busy: number[] = [];
      for (let n = 0; n < context.iterations(10); n++) await world.destroy(await timed(busy, fork));
      const baseline = ascending(creates);
      return [
        summarize({
          name: 'local.fork',
          unit: 'ms',
          samples: ascending(idle),
          baseline,
          details: { files, source: 'idle' },
        }),
        summarize({
          name: 'local.fork.busy',
          unit: 'ms',
          samples: ascending(busy),
          baseline,
          details: { files: 100, source: 'busy' },
        }),
      ];
    });
  },
};
