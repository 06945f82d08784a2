import type { Document, Node, Pair } from 'yaml';
import { isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import type { ProfileIssue } from '../contract/profile.ts';

/** A profile is a page, not a book. */
export const LARGEST_DOCUMENT_BYTES = 256 * 1024;
/** Anchors are a convenience; expanding them without bound is an attack. */
const MOST_ALIASES = 32;

export type FieldPath = readonly (string | number)[];

export interface SourcePosition {
  /** Only where one profile is made of several files. */
  readonly file?: string;
  readonly line: number | null;
  readonly column: number | null;
}

export interface YamlDocument {
  readonly value: unknown;
  /** Where a field stands; where its nearest parent stands, if it is not there. */
  locate(path: FieldPath): SourcePosition;
}

export const NOWHERE: SourcePosition = { line: null, column: null };

/** YAML 1.2, core schema, no tags, no merge keys, no duplicate keys: what JSON can say, with comments. */
export function readYaml(text: string, file: string): YamlDocument | ProfileIssue[] {
  const lines = new LineCounter();
  const at = (offset: number | undefined): SourcePosition => {
    if (offset === undefined) return NOWHERE;
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const issue = (problem: string, remedy: string, position = NOWHERE): ProfileIssue[] => [
    { file, ...position, field: '', problem, remedy },
  ];
  if (Buffer.byteLength(text) > LARGEST_DOCUMENT_BYTES) {
    return issue('The document is larger than 256 KiB.', 'Write a shorter profile.');
  }
  try {
    const document = parseDocument(text, {
      version: '1.2',
      schema: 'core',
      merge: false,
      uniqueKeys: true,
      prettyErrors: false,
      lineCounter: lines,
    });
    const faults = [...document.errors, ...document.warnings];
    if (faults.length > 0) {
      return faults.flatMap((fault) =>
        issue(
          `This is not YAML that a profile may use: ${fault.message}`,
          remedyFor(fault.code),
          at(fault.pos[0]),
        ),
      );
    }
    if (document.directives?.yaml.version !== '1.2') {
      return issue('The document asks for another version of YAML.', 'Remove the %YAML directive.', at(0));
    }
    const value: unknown = document.toJS({ maxAliasCount: MOST_ALIASES });
    return { value, locate: (path) => at(offsetOf(document, path)) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return issue(
      `The document cannot be read: ${reason}`,
      'Write it without deep nesting and with few aliases.',
    );
  }
}

function remedyFor(code: string): string {
  switch (code) {
    case 'DUPLICATE_KEY':
      return 'Keep one of the two.';
    case 'TAG_RESOLVE_FAILED':
      return 'Remove the tag: plain values are enough.';
    case 'MULTIPLE_DOCS':
      return 'Put each profile in a file of its own.';
    case 'TAB_AS_INDENT':
    case 'BAD_INDENT':
      return 'Indent with spaces, the same number for each level.';
    default:
      return 'Correct the YAML at this place.';
  }
}

/** The offset of the key that leads to a field, or of the item in a list. */
function offsetOf(document: Document, path: FieldPath): number | undefined {
  let found = (document.contents as Node | null)?.range?.[0];
  for (let depth = 1; depth <= path.length; depth += 1) {
    const parent = depth === 1 ? document.contents : document.getIn(path.slice(0, depth - 1), true);
    const step = path[depth - 1];
    const pair = isMap(parent) ? parent.items.find((item) => keyOf(item) === String(step)) : undefined;
    const node = (pair?.key ?? document.getIn(path.slice(0, depth), true)) as Node | undefined;
    if (!node?.range) return found;
    found = node.range[0];
  }
  return found;
}

function keyOf({ key }: Pair): string {
  return String(isScalar(key) ? key.value : key);
}
