/**
 * Bundles the command line into a few CommonJS files: loading many small ES modules costs more than most commands do,
 * and importing a built-in one into an ES module evaluates all of it. The server stays outside, as modules.
 *
 *   node scripts/bundle-cli.ts           dist/cli, from what tsc wrote there: the published command
 *   node scripts/bundle-cli.ts --here    .build/cli, from the sources: what ./sandboxer runs in a checkout
 *   node scripts/bundle-cli.ts --to DIR  the same, elsewhere: for tests, which must not replace what is in use
 */
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Plugin } from 'rolldown';
import { rolldown } from 'rolldown';

const ROOT = join(import.meta.dirname, '..');

/** What is imported of the server, as seen from the bundle. */
function serverOutside(dir: string): Plugin {
  return {
    name: 'server-outside',
    resolveId(source, importer) {
      if (importer === undefined || !source.includes('../main/')) return null;
      return { id: relative(dir, resolve(dirname(importer), source)), external: true };
    },
  };
}

/** Commander could start programs for subcommands; ours never do, and the module is dear. */
const NO_PROGRAMS: Plugin = {
  name: 'no-programs',
  resolveId: (source, importer) =>
    source === 'node:child_process' && importer?.includes('/commander/') ? '\0no-programs' : null,
  load: (id) => (id === '\0no-programs' ? 'export default {}' : null),
};

/** What every command needs is one file: each further one costs half a millisecond. */
const COMMON =
  /node_modules\/commander\/|\/cli\/(?:args|output)\/|\/cli\/(?:program|invocation|global-options|usage-error|command-failure|command-help|daemon\/daemon-files)\.|\/client\/(?:api-error|connection-error|fresh-key|open-transport|paged-list|path-of|plain-exchange|retry-policy|sandboxes|send-body|server-address|transport)\.|no-programs/;

async function bundle(entry: string, dir: string): Promise<void> {
  const build = await rolldown({
    input: { main: entry },
    platform: 'node',
    plugins: [serverOutside(dir), NO_PROGRAMS],
  });
  await build.write({
    dir,
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    codeSplitting: {
      groups: [
        { name: 'start', test: /\/cli\/(?:command-table|package-version|compile-cache)\./, priority: 1 },
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
  await bundle(join(target, 'main.js'), draft);
  rmSync(target, { recursive: true });
  renameSync(draft, target);
}

/** Beside what is in use, then in its place: commands that run meanwhile keep the files they started with. */
async function bundleHere(): Promise<void> {
  const build = join(ROOT, '.build');
  const fresh = `cli-${process.pid}`;
  mkdirSync(build, { recursive: true });
  const before = readdirSync(build).filter((name) => name.startsWith('cli-'));
  await bundle(join(ROOT, 'src', 'cli', 'main.ts'), join(build, fresh));
  symlinkSync(fresh, join(build, `link-${process.pid}`));
  renameSync(join(build, `link-${process.pid}`), join(build, 'cli'));
  for (const name of before) if (name !== fresh) rmSync(join(build, name), { recursive: true, force: true });
}

const [how, where] = process.argv.slice(2);
if (how === '--to' && where !== undefined) await bundle(join(ROOT, 'src', 'cli', 'main.ts'), resolve(where));
else await (how === '--here' ? bundleHere() : bundlePackage());
