import type { TreeView } from './tree-view.ts';

/** A tree as text, for tests: a value that starts with `->` is a link. */
export function memoryTree(files: Readonly<Record<string, string>>): TreeView {
  const directories = new Set(
    Object.keys(files).flatMap((path) => path.split('/').map((_, n, parts) => parts.slice(0, n).join('/'))),
  );
  const textAt = (path: string) => (Object.hasOwn(files, path) ? files[path] : undefined);
  const linkTarget = (path: string) => {
    const text = textAt(path);
    return text?.startsWith('->') ? text.slice(2).trim() : null;
  };
  return {
    kind: (path) => {
      if (textAt(path) !== undefined) return linkTarget(path) === null ? 'file' : 'symlink';
      return path === '' || directories.has(path) ? 'directory' : null;
    },
    linkTarget,
    read: async (path) => (linkTarget(path) === null ? (textAt(path) ?? null) : null),
  };
}
