import { joinInTree } from './tree-view.ts';

/** A path that a compose file names: below the top of the tree, or somewhere else. */
export type PathRef = { readonly inside: string } | { readonly outside: string };

export function pathRef(base: string, path: string): PathRef {
  const inside = joinInTree(base, path);
  return inside === null ? { outside: path } : { inside };
}
