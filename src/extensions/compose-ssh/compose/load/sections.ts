import { pathRef } from '../tree/tree-path.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { isTree } from '../yaml/compose-yaml.ts';
import { textOf } from '../yaml/scalars.ts';
import { mergeTrees } from './merge-services.ts';

/** Sections of a compose file whose entries have names. */
export const SECTIONS = ['services', 'networks', 'volumes', 'secrets', 'configs'] as const;

export type Sections = { [section in (typeof SECTIONS)[number]]: Tree };

export const NOTHING: Sections = { services: {}, networks: {}, volumes: {}, secrets: {}, configs: {} };

/** Returns an entry with its file of a secret or config as a path from the top of the tree. */
export function placed(section: string, part: Tree, base: string): Tree {
  return Object.fromEntries(
    Object.entries(part).map(([name, item]) => {
      const tree = isTree(item) ? item : {};
      const file = textOf(tree.file);
      return [name, file === null ? tree : { ...tree, file: pathRef(base, file, `${section}.${name}.file`) }];
    }),
  );
}

export function mergeSections(base: Sections, over: Sections): Sections {
  return Object.fromEntries(
    SECTIONS.map((section) => [section, mergeNamed(base[section], over[section])]),
  ) as Sections;
}

function mergeNamed(base: Tree, over: Tree): Tree {
  const merged: Tree = { ...base };
  for (const [name, value] of Object.entries(over)) {
    merged[name] = isTree(base[name]) && isTree(value) ? mergeTrees(base[name], value) : value;
  }
  return merged;
}
