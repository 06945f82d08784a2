import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

/**
 * Bundles server programs with all that they import into a few files in `dir`: most of a start is finding and compiling modules.
 * `sources` holds the migrations that the store looks for beside itself.
 */
export async function bundleModules(
  input: Readonly<Record<string, string>>,
  sources: string,
  dir: string,
): Promise<void> {
  const build = await rolldown({ input, platform: 'node', logLevel: 'silent' });
  await build.write({
    dir,
    format: 'esm',
    entryFileNames: '[name].mjs',
    chunkFileNames: '[name]-[hash].mjs',
    comments: { annotation: false, jsdoc: false, legal: true },
  });
  await build.close();
  cpSync(join(sources, 'store', 'migrations'), join(dir, 'migrations'), { recursive: true });
}
