/**
 * Bundles the server with all that it imports: most of its start is finding and compiling a thousand small modules.
 *
 *   node scripts/bundle-server.ts           dist/server, from what tsc wrote: what the published command starts
 *   node scripts/bundle-server.ts --here    .build/server, from the sources: what ./sandboxer starts in a checkout
 */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { putInPlace, ROOT } from './bundle-place.ts';

/** What the command line imports of it. */
const ENTRIES = ['config', 'daemon', 'serve'];

async function bundle(sources: string, extension: 'ts' | 'js', dir: string): Promise<void> {
  const input = Object.fromEntries(
    ENTRIES.map((name) => [name, join(sources, 'main', `${name}.${extension}`)]),
  );
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

if (process.argv.includes('--here')) {
  await putInPlace('server', (dir) => bundle(join(ROOT, 'src'), 'ts', dir));
} else {
  await bundle(join(ROOT, 'dist'), 'js', join(ROOT, 'dist', 'server'));
}
