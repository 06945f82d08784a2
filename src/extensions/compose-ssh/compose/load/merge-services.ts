import type { Tree } from '../yaml/compose-yaml.ts';
import { isTree } from '../yaml/compose-yaml.ts';

/** Lists that a later file replaces instead of extending. */
const REPLACED = new Set(['command', 'entrypoint', 'healthcheck.test']);

/** Identity of list items: of two items with the same key the later wins. */
const KEYS: Readonly<Record<string, (item: Tree) => string>> = {
  volumes: ({ target }) => String(target),
  ports: ({ target, protocol }) => `${String(target)}/${String(protocol)}`,
  secrets: ({ source, target }) => String(target ?? source),
  configs: ({ source, target }) => String(target ?? source),
};

function mergeLists(field: string, base: readonly unknown[], over: readonly unknown[]): unknown[] {
  const keyOf = Object.hasOwn(KEYS, field) ? KEYS[field] : undefined;
  const merged = new Map<string, unknown>();
  for (const item of [...base, ...over]) {
    merged.set(keyOf === undefined ? JSON.stringify(item) : keyOf(item as Tree), item);
  }
  return [...merged.values()];
}

function mergeValues(field: string, base: unknown, over: unknown): unknown {
  if (over === undefined) return base;
  if (base === undefined || REPLACED.has(field)) return over;
  if (isTree(base) && isTree(over)) {
    if ('inside' in over || 'outside' in over) return over;
    return mergeTrees(base, over, `${field}.`);
  }
  if (Array.isArray(base) && Array.isArray(over)) return mergeLists(field, base, over);
  return over;
}

/** Merges by compose’s own rules: maps are merged, lists joined, everything else replaced. */
export function mergeTrees(base: Tree, over: Tree, prefix = ''): Tree {
  const merged: Tree = { ...base };
  for (const [key, value] of Object.entries(over))
    merged[key] = mergeValues(`${prefix}${key}`, base[key], value);
  return merged;
}
