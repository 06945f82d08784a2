/** A machine that went down and came up again, as a state directory of `ext.local` sees it. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SpawnerClient } from '../../src/extensions/local/engine/spawner-client.ts';
import type { LocalServer } from './local-server.ts';

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}

/** One that nobody has waited for yet runs no more; what is frozen dies when it is thawed, as the kernel has it. */
async function gone(pid: number): Promise<void> {
  const runs = () => /^State:\s+[RSTt]/m.test(statusOf(pid));
  for (let tries = 0; tries < 2400 && runs(); tries++) await sleep(25);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Everything of ours that runs is killed by its pid; what a boot would not have left is taken away. */
export async function powerCut(server: LocalServer): Promise<void> {
  const base = join(server.dir, 'local');
  const spawner = await SpawnerClient.open(join(base, 'spawner.sock'), () => {});
  const pids = [Number((await spawner.call('hello')).pid)];
  spawner.close();
  await server.stop();
  const runs = readdirSync(join(base, 'sandboxes')).map((name) => join(base, 'sandboxes', name, 'run'));
  // What has ended has none: 0 would be whoever runs this.
  pids.push(...runs.map((run) => Number(readFileSync(run, 'utf8').split(' ')[3])).filter((pid) => pid > 0));
  for (const pid of pids) kill(pid);
  for (const pid of pids) await gone(pid);
  rmSync(join(base, 'run'), { recursive: true });
  for (const run of runs) writeFileSync(run, readFileSync(run, 'utf8').replace(/^1 \S+/, '1 another-boot'));
}
