import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
import { UnixClient } from '../../tests/support/unix-client.ts';
import type { Benchmark } from '../harness.ts';
import { measure, summarize } from '../harness.ts';
import { fillStore } from './fill-store.ts';

const STORED = 100_000;

function residentMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}

export const benchmark: Benchmark = {
  name: 'control.list',
  description: 'first page of 100 out of 100,000 stored sandboxes (target p50 ≤ 5 ms, memory flat)',
  async run(context) {
    const dir = temporaryDir();
    const stored = context.smoke ? 500 : STORED;
    await fillStore(dir, stored);
    const server = await startChild(join(import.meta.dirname, 'control-server.ts'), dir);
    const client = new UnixClient(server.socketPath, 1);
    try {
      const list = async () => {
        const { items } = await client.expect<{ items: unknown[] }>(200, 'GET', '/v1/sandboxes?limit=100');
        if (items.length !== 100) throw new Error(`the page has ${items.length} items`);
      };
      await measure(context.iterations(200), 0, list);
      const before = residentMb(server.process.pid as number);
      const samples = await measure(context.iterations(1000), 20, list);
      const after = residentMb(server.process.pid as number);
      const details = { stored, rss_mb_before: Math.round(before), rss_mb_after: Math.round(after) };
      return [summarize({ name: 'control.list', unit: 'ms', samples, details })];
    } finally {
      client.close();
      await server.stop();
      removeDir(dir);
    }
  },
};
