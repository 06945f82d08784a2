import { isFaulty, readYaml } from '../../../../yaml/read-yaml.ts';
import { writeQuotedYaml } from '../../../../yaml/write-yaml.ts';
import type { YamlLimits } from '../../../../yaml/yaml-limits.ts';
import { FILE } from '../../../../yaml/yaml-limits.ts';
import { invalidStack } from './finding.ts';

export type Tree = { [key: string]: unknown };

export const LARGEST_FILE_BYTES = FILE.bytes;

/** Parses a compose file to plain values: anchors and merge keys expanded, no tags, bounded. */
export function parseComposeYaml(text: string, file: string): Tree {
  return readComposeYaml(text, file, FILE).tree;
}

/** Parses as `parseComposeYaml`, and returns the lexical tokens used. */
export function readComposeYaml(
  text: string,
  file: string,
  limits: YamlLimits,
): { readonly tree: Tree; readonly tokens: number } {
  const read = readYaml(text, { limits, merge: true });
  if (isFaulty(read)) {
    const { code, message, remedy, line } = read[0] as (typeof read)[number];
    const place = line === null ? '' : `line ${line}: `;
    throw invalidStack(
      file,
      `${place}${message}.`,
      code === 'TAG_RESOLVE_FAILED' ? 'Remove the tag: !reset and !override are not understood.' : remedy,
    );
  }
  const { value, tokens } = read;
  if (value === null || value === undefined) return { tree: {}, tokens };
  if (!isTree(value)) throw invalidStack(file, 'It is not a mapping.', 'Begin with "services:".');
  requireNoPrototype(value, file);
  return { tree: value, tokens };
}

function requireNoPrototype(value: unknown, file: string): void {
  if (typeof value !== 'object' || value === null) return;
  if (Object.hasOwn(value, '__proto__'))
    throw invalidStack(file, 'A key is named __proto__.', 'Give it another name.');
  for (const item of Object.values(value)) requireNoPrototype(item, file);
}

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A reference to a variable of the backend, whose value compose inserts: the value is in no file. */
export class Reference {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** Returns what both generations of compose read back as exactly these values: every text quoted, every `$` doubled. */
export function writeComposeYaml(value: Tree, heading: string): string {
  const literal = (at: unknown): unknown => {
    if (at instanceof Reference) return `\${${at.name}}`;
    if (typeof at === 'string') return at.replaceAll('$', '$$$$');
    if (Array.isArray(at)) return at.map(literal);
    if (isTree(at)) return Object.fromEntries(Object.entries(at).map(([key, item]) => [key, literal(item)]));
    return at;
  };
  const comment = heading.replaceAll(/^/gm, '# ');
  return `${comment}\n${writeQuotedYaml(literal(value))}`;
}
