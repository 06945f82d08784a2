import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { bundleModules } from '../../scripts/bundle-modules.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/**
 * The server of a test as one file, for tests that start it hundreds of times: most of a start is finding and compiling
 * its modules.
 */
export async function bundleServer(file: string, name: string): Promise<string> {
  const dir = join(ROOT, '.build', `test-${name}-${process.pid}`);
  mkdirSync(dir, { recursive: true });
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  await bundleModules({ server: file }, join(ROOT, 'src'), dir);
  return join(dir, 'server.mjs');
}
