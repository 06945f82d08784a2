import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const ROOT = join(import.meta.dirname, '..', '..');

/**
 * The server of a test as one file, for tests that start it hundreds of times: most of a start is finding and compiling
 * its modules. It lies as deep below the checkout as the modules of `src/main` do, so that it finds what they find.
 */
export async function bundleServer(file: string, name: string): Promise<string> {
  const dir = join(ROOT, '.build', `test-${name}-${process.pid}`);
  mkdirSync(dir, { recursive: true });
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  const build = await rolldown({ input: { server: file }, platform: 'node', logLevel: 'silent' });
  await build.write({
    dir,
    format: 'esm',
    entryFileNames: '[name].mjs',
    chunkFileNames: '[name]-[hash].mjs',
  });
  await build.close();
  cpSync(join(ROOT, 'src', 'store', 'migrations'), join(dir, 'migrations'), { recursive: true });
  return join(dir, 'server.mjs');
}
