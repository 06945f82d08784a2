/**
 * Bundles the command line into a few CommonJS files: loading many small ES modules costs more than most commands do,
 * and importing a built-in one into an ES module evaluates all of it. The server is a bundle of its own beside it.
 *
 *   node scripts/bundle-cli.ts           dist/cli, from what tsc wrote there: the published command
 *   node scripts/bundle-cli.ts --here    .build/cli, from the sources: what ./sandboxer runs in a checkout
 *   node scripts/bundle-cli.ts --to DIR  the same, elsewhere, with the server as modules: for tests, which must not
 *                                        replace what is in use
 */
import { renameSync, rmSync } from 'node:fs';
import { join, parse, relative, resolve } from 'node:path';
import type { Plugin } from 'rolldown';
import { rolldown } from 'rolldown';
import { putInPlace, ROOT } from './bundle-place.ts';

/** Imports of server modules stay outside the bundle; `placeOf` gives their path for one below src/main/. */
function serverOutside(placeOf: (path: string) => string): Plugin {
  return {
    name: 'server-outside',
    resolveId: (source, importer) =>
      importer !== undefined && source.includes('../main/')
        ? { id: placeOf(source.replace(/^.*\.\.\/main\//, '')), external: true }
        : null,
  };
}

/** Bundle of the server, made by `bundle-server.ts`. */
const beside = (path: string) => `../server/${parse(path).name}.mjs`;

/** Commander could start programs for subcommands; ours never do, and the module is slow to load. */
const NO_PROGRAMS: Plugin = {
  name: 'no-programs',
  resolveId: (source, importer) =>
    source === 'node:child_process' && importer?.includes('/commander/') ? '\0no-programs' : null,
  load: (id) => (id === '\0no-programs' ? 'export default {}' : null),
};

/** Modules that every command needs are one file: each further one costs half a millisecond. */
const COMMON =
  /node_modules\/commander\/|\/cli\/(?:args|output)\/|\/cli\/(?:program|invocation\/(?:invocation|listing|global-options)|failures\/(?:nearest-name|usage-error|command-failure)|process\/interrupts|help\/command-notes|daemon\/daemon-files)\.|\/client\/(?:transport\/(?:api-error|connection-error|fresh-key|open-transport|paged-list|path-of|plain-exchange|retry-policy|send-body|server-address|transport)|resources\/sandboxes)\.|no-programs/;

async function bundle(entry: string, dir: string, server: (path: string) => string): Promise<void> {
  const build = await rolldown({
    input: { main: entry },
    platform: 'node',
    plugins: [serverOutside(server), NO_PROGRAMS],
  });
  await build.write({
    dir,
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    codeSplitting: {
      groups: [
        {
          name: 'start',
          test: /\/cli\/(?:command-table|process\/(?:package-version|compile-cache))\./,
          priority: 1,
        },
        { name: 'common', test: COMMON },
      ],
    },
    comments: { annotation: false, jsdoc: false, legal: true },
  });
  await build.close();
}

async function bundlePackage(): Promise<void> {
  const target = join(ROOT, 'dist', 'cli');
  const draft = join(ROOT, 'dist', 'cli-bundle');
  await bundle(join(target, 'main.js'), draft, beside);
  rmSync(target, { recursive: true });
  renameSync(draft, target);
}

const ENTRY = join(ROOT, 'src', 'cli', 'main.ts');
const [how, where] = process.argv.slice(2);
if (how === '--to' && where !== undefined) {
  const dir = resolve(where);
  await bundle(ENTRY, dir, (path) => relative(dir, join(ROOT, 'src', 'main', path)));
} else if (how === '--here') {
  await putInPlace('cli', (dir) => bundle(ENTRY, dir, beside));
} else {
  await bundlePackage();
}
