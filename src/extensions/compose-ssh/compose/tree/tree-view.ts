/** The shipped tree as the analysis sees it: names and links of all entries, texts on request. */
export interface TreeView {
  kind(path: string): 'file' | 'directory' | 'symlink' | null;
  linkTarget(path: string): string | null;
  /** Returns `null` when there is no such file; only plain files are read. */
  read(path: string): Promise<string | null>;
}

const MOST_LINKS = 40;

/** Returns `./a//b/../c` below `base` as a path from the top (`''`); `null` when it leads out, or is not relative. */
export function joinInTree(base: string, path: string): string | null {
  if (path.startsWith('/') || path.startsWith('~') || path.includes('\0')) return null;
  const parts = base === '' ? [] : base.split('/');
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.pop() === undefined) return null;
  }
  return parts.join('/');
}

/** Returns where a path of the tree really leads, link by link; `null` when that is outside. A missing entry leads to itself. */
export function realInTree(tree: TreeView, path: string): string | null {
  let followed = 0;
  const real: string[] = [];
  const rest = path.split('/').reverse();
  while (rest.length > 0) {
    const part = rest.pop() as string;
    if (part === '' || part === '.') continue;
    if (part === '..') {
      if (real.pop() === undefined) return null;
      continue;
    }
    const target = tree.linkTarget([...real, part].join('/'));
    if (target === null) {
      real.push(part);
      continue;
    }
    followed += 1;
    if (target.startsWith('/') || followed > MOST_LINKS) return null;
    rest.push(...target.split('/').reverse());
  }
  return real.join('/');
}

export function directoryOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash === -1 ? '' : path.slice(0, slash);
}
