import type { PathRef } from '../tree/tree-path.ts';
import { isPathRef } from '../tree/tree-path.ts';
import type { TreeView } from '../tree/tree-view.ts';
import { joinInTree } from '../tree/tree-view.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { isTree } from '../yaml/compose-yaml.ts';
import { textOf } from '../yaml/scalars.ts';
import { imageName } from './image-name.ts';
import { labels } from './label-names.ts';
import { placeOf } from './place.ts';
import type { Reading } from './reading.ts';
import type { RecordOf, Shape } from './shape.ts';
import { boundary, flag, ignored, list, map, record, text } from './shape.ts';
import * as words from './words.ts';

const FROM_TREE = 'Build from a directory of the repository.';
const BEYOND = 'It would reach beyond the files of the build, or name what others use.';

/** Fields of a build that are emitted as they were read. */
export const BUILD = {
  additional_contexts: boundary(map(words.variableRule, words.line), BEYOND),
  args: words.variables,
  cache_from: ignored(['app:cache']),
  cache_to: ignored(['type=inline']),
  dockerfile_inline: words.freeText,
  entitlements: boundary(list(words.name), BEYOND),
  extra_hosts: map(words.hostNameRule, words.hostAddress),
  isolation: ignored('default'),
  labels,
  network: boundary(words.name, 'It would be built in a network of the host.', {
    harmless: (network) => network === 'none' || network === 'default',
  }),
  no_cache: flag,
  platforms: list(words.platform),
  privileged: boundary(flag, BEYOND, { harmless: (on) => !on }),
  provenance: ignored(false),
  pull: flag,
  sbom: ignored(false),
  secrets: boundary(list(words.sectionName), BEYOND),
  shm_size: words.bytes,
  ssh: boundary(list(words.line), BEYOND),
  tags: boundary(list(imageName), BEYOND),
  target: text({ what: 'a stage', pattern: /^[\w][\w.-]{0,127}$/, examples: ['production'] }),
  ulimits: ignored({ nofile: 1024 }),
} satisfies { readonly [field: string]: Shape<unknown> };

const fields = record(BUILD);

export interface BuildModel {
  /** The directory of the tree, by its real path; outside of it only where elevated. */
  readonly context: PathRef;
  /** `null`: the `Dockerfile` of the context, or an inline one. */
  readonly dockerfile: PathRef | null;
  readonly fields: RecordOf<typeof BUILD>;
}

function dockerfileOf(value: unknown, context: PathRef, tree: TreeView, at: Reading): PathRef | null {
  if (value === undefined || value === null) return null;
  const given = words.line.read(textOf(value) ?? '', at);
  if (given === undefined || given === '') return at.invalid('It is not a path.', 'Write a path.') ?? null;
  if ('outside' in context) return { outside: given };
  const path = joinInTree(context.inside, given);
  return placeOf(path === null ? { outside: given } : { inside: path }, tree, at, FROM_TREE);
}

/** Returns a build whose paths were judged, from `context` as a `PathRef` and the rest as it was written. */
export function readBuild(value: unknown, tree: TreeView, at: Reading): BuildModel | null {
  if (value === undefined) return null;
  const { context, dockerfile, ...rest }: Tree = isTree(value) ? value : {};
  if (!isPathRef(context)) return at.invalid('It names no directory.', 'Write "build: ./directory".') ?? null;
  const place = placeOf(context, tree, at.below('context'), FROM_TREE);
  const read = fields.read(rest, at);
  return {
    context: place,
    dockerfile: dockerfileOf(dockerfile, place, tree, at.below('dockerfile')),
    fields: read ?? {},
  };
}
