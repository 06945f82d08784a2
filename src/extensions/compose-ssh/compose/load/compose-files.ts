/** Finds the compose files of a tree. */

import type { TreeView } from '../tree/tree-view.ts';
import { joinInTree, realInTree } from '../tree/tree-view.ts';
import { invalidStack } from '../yaml/finding.ts';
import type { Variables } from './interpolate.ts';

const MAIN = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'];
const OVERRIDES = [
  'compose.override.yaml',
  'compose.override.yml',
  'docker-compose.override.yml',
  'docker-compose.override.yaml',
];
/** The input that names compose files of the tree. */
export const FILES_INPUT = 'inputs.compose_files';

function firstThere(tree: TreeView, directory: string, names: readonly string[]): string | undefined {
  return names
    .map((name) => (directory === '' ? name : `${directory}/${name}`))
    .find((path) => tree.kind(path) !== null);
}

/** Returns the files that compose would read in a directory: the first of its names, and its override. */
function filesIn(tree: TreeView, directory: string): string[] {
  const main = firstThere(tree, directory, MAIN);
  if (main === undefined) return [];
  const override = firstThere(tree, directory, OVERRIDES);
  return override === undefined ? [main] : [main, override];
}

/** Returns the files of a stack whose request names none. */
export function defaultFiles(tree: TreeView, variables: Variables): string[] {
  const named = variables.get('COMPOSE_FILE');
  if (named !== undefined && named !== '') return named.split(variables.get('COMPOSE_PATH_SEPARATOR') || ':');
  const files = filesIn(tree, '');
  if (files.length > 0) return files;
  throw invalidStack(
    FILES_INPUT,
    'There is no compose file at the top of the shipped tree.',
    `Add one of ${MAIN.join(', ')}, or name yours in the input "compose_files".`,
  );
}

/** Returns the files that a path of the tree names: a compose file, or the files that compose reads in a directory. */
export function bundleFiles(tree: TreeView, place: string, field: string): string[] {
  const path = joinInTree('', place);
  const real = path === null ? null : realInTree(tree, path);
  const kind = real === null ? null : tree.kind(real);
  if (path !== null && kind === 'file') return [path];
  const files = path !== null && kind === 'directory' ? filesIn(tree, path) : [];
  if (files.length > 0) return files;
  throw invalidStack(
    field,
    kind === null ? `There is no ${place} in the shipped tree.` : `There is no compose file in ${place}.`,
    'Name a compose file of the repository or its directory, an upload (upload:upl_…), or a repository.',
  );
}
