import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SpawnerClient } from '../../src/extensions/local/engine/spawner-client.ts';

/** Ends the spawner of a state directory, which would linger for a minute. */
export async function retireSpawner(dir: string): Promise<void> {
  const path = join(dir, 'local', 'spawner.sock');
  const spawner = await SpawnerClient.open(path, () => {}).catch(() => null);
  await spawner?.call('retire').catch(() => {});
  spawner?.close();
  for (let tries = 0; tries < 400 && existsSync(path); tries++) await sleep(25);
}
