import type { PathRef } from '../tree/tree-path.ts';
import { shownPath } from '../tree/tree-path.ts';
import type { TreeView } from '../tree/tree-view.ts';
import { realInTree } from '../tree/tree-view.ts';
import type { Reading } from './reading.ts';
import { hasControl } from './words.ts';

/** Returns where a path of the tree leads once every link is followed; a path outside of the tree is a finding. */
export function placeOf(path: PathRef, tree: TreeView, at: Reading, remedy: string): PathRef {
  const inside = 'inside' in path ? realInTree(tree, path.inside) : null;
  if (inside === null) {
    const outside = shownPath(path);
    if (/\/(?:docker|podman|containerd|crio)[\w.-]*\.sock$/.test(outside))
      at.boundary(`${outside} is the engine: a container that has it has the host.`);
    else if ('outside' in path) at.boundary(`${outside} is outside of the shipped tree.`, remedy);
    else at.boundary(`${outside} leads out of the shipped tree by a link.`, remedy);
    return { outside };
  }
  if (hasControl(inside))
    at.invalid('A link leads it to a name with control characters.', 'Rename that file or directory.');
  return { inside };
}
