/** Memory of a server after a garbage collection: before that, its size depends on the time of the last collection. */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface CollectedMemory {
  readonly heap_mb: number;
  readonly rss_mb: number;
}

const megabytes = (bytes: number) => Number((bytes / 1_048_576).toFixed(1));
const pathIn = (stateDir: string) => join(stateDir, 'collected-memory.json');

/** In the server: answers SIGUSR2. */
export function answerWithMemory(stateDir: string): void {
  process.on('SIGUSR2', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    // Objects that one collection releases, such as a closed socket, hold objects that the next one collects.
    for (let round = 0; round < 3; round++) {
      collect();
      await sleep(50);
    }
    const { heapUsed, rss } = process.memoryUsage();
    const path = pathIn(stateDir);
    writeFileSync(`${path}.new`, JSON.stringify({ heap_mb: megabytes(heapUsed), rss_mb: megabytes(rss) }));
    renameSync(`${path}.new`, path);
  });
}

/** Returns the collected memory of the server with this process id. */
export async function collectedMemory(pid: number, stateDir: string): Promise<CollectedMemory> {
  const path = pathIn(stateDir);
  rmSync(path, { force: true });
  process.kill(pid, 'SIGUSR2');
  for (let tries = 0; !existsSync(path); tries++) {
    if (tries > 1000) throw new Error('the server did not tell what it holds');
    await sleep(20);
  }
  return JSON.parse(readFileSync(path, 'utf8')) as CollectedMemory;
}
