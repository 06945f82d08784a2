import { invalidStack } from '../yaml/finding.ts';
import { joinInTree } from './tree-view.ts';

/** A path that a compose file names: below the top of the tree, or elsewhere. */
export type PathRef = { readonly inside: string } | { readonly outside: string };

/** PathRefs made by this module: a mapping of a compose file that looks like a PathRef is none. */
const made = new WeakSet<object>();
const CONTROL = /[\p{C}\p{Zl}\p{Zp}]/u;
const LONGEST = 4096;

function known<T extends PathRef>(path: T): T {
  made.add(path);
  return path;
}

/** Refuses a path of a compose file that has control characters: it would enter lists and scripts. */
function checkPath(path: string, field: string, service: string | null): void {
  if (path.length > LONGEST || CONTROL.test(path)) {
    throw invalidStack(
      field,
      `${JSON.stringify(path.slice(0, 80))} is too long, or holds control characters.`,
      'Rename the file, and name it by printable characters.',
      service,
    );
  }
}

export function pathRef(base: string, path: string, field: string, service: string | null = null): PathRef {
  checkPath(path, field, service);
  const inside = joinInTree(base, path);
  return inside === null ? known({ outside: path }) : known({ inside });
}

/** Returns a path outside of the tree whatever it looks like, such as an address of a repository. */
export function outsideRef(path: string, field: string, service: string): PathRef {
  checkPath(path, field, service);
  return known({ outside: path });
}

export function isPathRef(value: unknown): value is PathRef {
  return typeof value === 'object' && value !== null && made.has(value);
}

export function shownPath(path: PathRef): string {
  return 'inside' in path ? path.inside || '.' : path.outside;
}
