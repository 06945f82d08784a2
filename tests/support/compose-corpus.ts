/** Compose stacks in the style of public ones: data below `tests/compose-corpus`, a directory each. */
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const DIRECTORY = join(import.meta.dirname, '..', 'compose-corpus');
/** What a request says beside the tree, and what must be told of the stack; it is no part of the tree. */
const ABOUT = 'about.json';

export interface CorpusStack {
  readonly name: string;
  readonly files: Readonly<Record<string, string>>;
  readonly composeFiles: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly profiles: readonly string[];
  readonly notes: readonly string[];
}

export function readCorpus(): CorpusStack[] {
  return readdirSync(DIRECTORY).sort().map(readStack);
}

function readStack(name: string): CorpusStack {
  const root = join(DIRECTORY, name);
  const paths = globSync('**/{*,.*}', { cwd: root, withFileTypes: true }).filter((entry) => entry.isFile());
  const { [ABOUT]: about, ...files } = Object.fromEntries(
    paths.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(root.length + 1), readFileSync(path, 'utf8')];
    }),
  );
  const { compose_files = [], env = {}, profiles = [], notes = [] } = JSON.parse(about ?? '{}');
  return { name, files, composeFiles: compose_files, env, profiles, notes };
}

/** Every image that services and Dockerfiles of a stack name, with what the tree itself says of variables filled in. */
export function imagesNamed({ files }: CorpusStack): Set<string> {
  const known: Readonly<Record<string, string>> = {
    ...variablesOf(files),
    RUBY_VERSION: '3.3',
  };
  const fill = (text: string) =>
    text.replace(/\$\{(\w+)(?::?[-?]([^}]*))?\}/g, (_, name, fallback = '') => known[name] ?? fallback);
  const stages = new Set<string>();
  const names = new Set<string>();
  for (const text of Object.values(files)) {
    for (const [, image = ''] of text.matchAll(/\bimage: *"?([^\s",}]+(?:\}[^\s",}]*)*)/g))
      names.add(fill(image));
    for (const [, image = '', stage] of text.matchAll(/(?:^|")FROM ([^\s\\]+)(?: AS (\w+))?/gm)) {
      if (!stages.has(image)) names.add(fill(image));
      if (stage !== undefined) stages.add(stage);
    }
  }
  return names;
}

function variablesOf(files: CorpusStack['files']): Record<string, string> {
  const lines = Object.entries(files).flatMap(([path, text]) =>
    /\.?env$/.test(path) ? text.split('\n') : [],
  );
  return Object.fromEntries(
    lines.flatMap((line) => {
      const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
      return name === undefined || value === undefined ? [] : [[name, value]];
    }),
  );
}
