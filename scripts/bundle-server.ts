/**
 * Bundles the server with all that it imports: most of its start is finding and compiling a thousand small modules.
 *
 *   node scripts/bundle-server.ts           dist/server, from what tsc wrote: what the published command starts
 *   node scripts/bundle-server.ts --here    .build/server, from the sources: what ./sandboxer starts in a checkout
 */
import { basename, join } from 'node:path';
import { bundleModules } from './bundle-modules.ts';
import { putInPlace, ROOT } from './bundle-place.ts';

/** Imports of the command line from the server, as paths below src/main/. */
const ENTRIES = ['config/config', 'daemon', 'serve'];

async function bundle(sources: string, extension: 'ts' | 'js', dir: string): Promise<void> {
  const entries = ENTRIES.map((path) => [basename(path), join(sources, 'main', `${path}.${extension}`)]);
  await bundleModules(Object.fromEntries(entries), sources, dir);
}

if (process.argv.includes('--here')) {
  await putInPlace('server', (dir) => bundle(join(ROOT, 'src'), 'ts', dir));
} else {
  await bundle(join(ROOT, 'dist'), 'js', join(ROOT, 'dist', 'server'));
}
