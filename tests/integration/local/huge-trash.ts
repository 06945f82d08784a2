/** Something that was thrown away and takes a while to remove. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { childrenOf, hold, names, until } from './killable-server.ts';

const FOLDERS = 60;
const FILES = 100;

/** Where it lies; who empties the trash finds it there when it is next woken. */
export function hugeTrash(base: string): string {
  const made = join(base, 'import-huge');
  for (let folder = 0; folder < FOLDERS; folder++) {
    mkdirSync(join(made, String(folder)), { recursive: true });
    for (let file = 0; file < FILES; file++) writeFileSync(join(made, String(folder), String(file)), '');
  }
  const thrown = join(base, 'trash', 'huge');
  renameSync(made, thrown);
  return thrown;
}

/** Stops the janitor when it has begun with it. */
export async function holdAtWork(spawner: number, huge: string): Promise<number> {
  const [janitor = 0] = childrenOf(spawner, 'sbx-janitor');
  await until('it is being removed', () => names(huge).length < FOLDERS || null, { every: 0 });
  await hold(janitor);
  return janitor;
}
