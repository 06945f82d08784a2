import type { TreeView } from './tree-view.ts';

/** A tree as text, for tests: a value that starts with `->` is a link. */
export function memoryTree(files: Readonly<Record<string, string>>): TreeView {
  const directories = new Set(
    Object.keys(files).flatMap((path) => path.split('/').map((_, n, parts) => parts.slice(0, n).join('/'))),
  );
  const linkTarget = (path: string) => (files[path]?.startsWith('->') ? files[path].slice(2).trim() : null);
  return {
    kind: (path) => {
      if (files[path] !== undefined) return linkTarget(path) === null ? 'file' : 'symlink';
      return path === '' || directories.has(path) ? 'directory' : null;
    },
    linkTarget,
    read: async (path) => (linkTarget(path) === null ? (files[path] ?? null) : null),
  };
}
