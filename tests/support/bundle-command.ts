import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
let bundled: string | null = null;

/**
 * The command as it is shipped, in a few files: for tests that run it again and again, which from the sources takes
 * twice as long. It lies as deep below the checkout as the sources do, so that it finds the server.
 */
export function bundleCommand(): string {
  if (bundled !== null) return bundled;
  const directory = mkdtempSync(join(ROOT, '.build', 'test-cli-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const build = spawnSync(process.execPath, [join(ROOT, 'scripts/bundle-cli.ts'), '--to', directory], {
    encoding: 'utf8',
  });
  if (build.status !== 0) throw new Error(build.stderr);
  bundled = join(directory, 'main.cjs');
  return bundled;
}
