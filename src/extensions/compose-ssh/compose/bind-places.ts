/**
 * Where the sources of binds lie on the host. The engine follows links in a source when a container starts, also when it
 * is started again. A source below a directory that some container may write could be replaced by a link to anywhere in
 * the meantime: such a source lies in a place of its own, and is mounted into the others where they expect it.
 */
import type { Tree } from './compose-yaml.ts';
import type { Mount } from './mount.ts';
import { listOf } from './scalars.ts';
import type { TreeView } from './tree-view.ts';
import { realInTree } from './tree-view.ts';

export interface BindPlaces {
  /** From the top of the stack’s directory: `tree/data`, `binds/0`. */
  placeOf(source: string): string;
  /** What must be copied from the tree to a place of its own. */
  readonly copies: readonly { readonly from: string; readonly to: string }[];
  /** Sources that are not in the tree: empty directories, as the engine would make them. */
  readonly missing: readonly string[];
  /** What a service that mounts `source` at `target` must mount in addition. */
  inner(source: string): readonly { readonly place: string; readonly below: string }[];
}

function isBelow(path: string, directory: string): boolean {
  return path !== directory && (directory === '' || path.startsWith(`${directory}/`));
}

export function realSource(mount: Mount, tree: TreeView): string | null {
  if (mount.type !== 'bind' || 'outside' in mount.source) return null;
  return realInTree(tree, mount.source.inside);
}

export function bindPlaces(services: Iterable<Tree>, tree: TreeView): BindPlaces {
  const sources = new Set<string>();
  const writable = new Set<string>();
  for (const service of services) {
    for (const mount of listOf(service.volumes) as Mount[]) {
      const source = realSource(mount, tree);
      if (source === null) continue;
      sources.add(source);
      if (!mount.readOnly) writable.add(source);
    }
  }
  const own = [...sources]
    .filter((source) => [...writable].some((directory) => isBelow(source, directory)))
    .sort();
  const places = new Map(own.map((source, n) => [source, `binds/${n}`]));
  const placeOf = (source: string) => places.get(source) ?? (source === '' ? 'tree' : `tree/${source}`);
  return {
    placeOf,
    copies: own.map((source) => ({ from: `tree/${source}`, to: placeOf(source) })),
    missing: [...sources]
      .filter((source) => source !== '' && tree.kind(source) === null)
      .map((source) => `tree/${source}`),
    inner: (source) =>
      own
        .filter((other) => isBelow(other, source))
        .map((other) => ({
          place: placeOf(other),
          below: source === '' ? other : other.slice(source.length + 1),
        })),
  };
}
