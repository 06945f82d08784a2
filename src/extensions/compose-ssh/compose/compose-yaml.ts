import { parseDocument, stringify, visit } from 'yaml';
import { invalidStack } from './finding.ts';

export type Tree = { [key: string]: unknown };

/** A compose file is a page; what is larger is generated, or an attack. */
export const LARGEST_FILE_BYTES = 1_048_576;
/** Anchors and merge keys are in use; expanding them without bound is an attack. */
const MOST_ALIASES = 1_000;
const MOST_VALUES = 100_000;
const DEEPEST = 32;

/** Values after every alias and merge key was expanded: counted, so that few bytes cannot become many. */
function checkSize(value: unknown, file: string): void {
  let count = 0;
  const walk = (at: unknown, depth: number): void => {
    count += 1;
    if (count > MOST_VALUES || depth > DEEPEST) {
      throw invalidStack(
        file,
        'It becomes too large or too deep when its anchors are expanded.',
        'Write it out, or split it.',
      );
    }
    if (Array.isArray(at)) for (const item of at) walk(item, depth + 1);
    else if (typeof at === 'object' && at !== null) {
      if (Object.hasOwn(at, '__proto__'))
        throw invalidStack(file, 'A key is named __proto__.', 'Give it another name.');
      for (const item of Object.values(at)) walk(item, depth + 1);
    }
  };
  walk(value, 0);
}

/** A compose file as plain values: anchors and merge keys expanded, no tags, bounded. */
export function parseComposeYaml(text: string, file: string): Tree {
  if (Buffer.byteLength(text) > LARGEST_FILE_BYTES) {
    throw invalidStack(file, 'It is larger than 1 MiB.', 'Write a shorter compose file.');
  }
  let value: unknown;
  try {
    const document = parseDocument(text, {
      version: '1.2',
      merge: true,
      uniqueKeys: false,
      prettyErrors: true,
    });
    const [fault] = [...document.errors, ...document.warnings];
    if (fault !== undefined) {
      const tag = fault.code === 'TAG_RESOLVE_FAILED';
      throw invalidStack(
        file,
        `It is not YAML that can be used: ${fault.message.split('\n')[0]}`,
        tag ? 'Remove the tag: !reset and !override are not understood.' : 'Correct the YAML at this place.',
      );
    }
    visit(document, {
      Map(_key, map) {
        const keys = new Set<string>();
        for (const { key } of map.items) {
          const name = String(key);
          if (name !== '<<' && keys.has(name))
            throw invalidStack(file, `The key "${name}" stands twice.`, 'Keep one of the two.');
          keys.add(name);
        }
      },
    });
    value = document.toJS({ maxAliasCount: MOST_ALIASES });
  } catch (error) {
    if (error instanceof Error && error.name === 'SandboxerError') throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw invalidStack(file, `It cannot be read: ${reason}`, 'Use fewer anchors and less nesting.');
  }
  checkSize(value, file);
  if (value === null || value === undefined) return {};
  if (!isTree(value)) throw invalidStack(file, 'It is not a mapping.', 'Begin with "services:".');
  return value;
}

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What both generations of compose read back as exactly these values: every text quoted, every `$` doubled. */
export function writeComposeYaml(value: Tree, heading: string): string {
  const literal = (at: unknown): unknown => {
    if (typeof at === 'string') return at.replaceAll('$', '$$$$');
    if (Array.isArray(at)) return at.map(literal);
    if (isTree(at)) return Object.fromEntries(Object.entries(at).map(([key, item]) => [key, literal(item)]));
    return at;
  };
  const comment = heading.replaceAll(/^/gm, '# ');
  const body = stringify(literal(value), {
    defaultStringType: 'QUOTE_DOUBLE',
    defaultKeyType: 'QUOTE_DOUBLE',
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
  return `${comment}\n${body}`;
}
