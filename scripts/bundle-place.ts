import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '..');

/** Fills `.build/NAME` beside the directory in use, then swaps the two: running programs keep the files they started with. */
export async function putInPlace(name: string, fill: (dir: string) => Promise<void>): Promise<void> {
  const build = join(ROOT, '.build');
  const fresh = `${name}-${process.pid}`;
  mkdirSync(build, { recursive: true });
  const before = readdirSync(build).filter((entry) => entry.startsWith(`${name}-`));
  await fill(join(build, fresh));
  const link = join(build, `link-${process.pid}`);
  symlinkSync(fresh, link);
  renameSync(link, join(build, name));
  for (const entry of before)
    if (entry !== fresh) rmSync(join(build, entry), { recursive: true, force: true });
}
