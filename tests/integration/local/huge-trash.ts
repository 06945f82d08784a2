/** Something that was thrown away and takes a second or more to remove. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';

export const FOLDERS = 300;
const FILES = 300;

/** Where it lies; who empties the trash looks for it there when it is next woken. */
export async function hugeTrash(base: string): Promise<string> {
  const made = join(base, 'import-huge');
  for (let folder = 0; folder < FOLDERS; folder++) {
    mkdirSync(join(made, String(folder)), { recursive: true });
    for (let file = 0; file < FILES; file++) writeFileSync(join(made, String(folder), String(file)), '');
    await turn();
  }
  const thrown = join(base, 'trash', 'huge');
  renameSync(made, thrown);
  return thrown;
}
