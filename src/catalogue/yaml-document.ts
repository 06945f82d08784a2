import type { Document, ErrorCode, Node, Pair } from 'yaml';
import { isMap, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import type { ProfileIssue } from '../contract/profile.ts';

/** A profile is a page, not a book. */
export const LARGEST_DOCUMENT_BYTES = 256 * 1024;
/** Anchors are a convenience; expanding them without bound is an attack. */
const MOST_ALIASES = 32;

const MOST_FAULTS = 20;

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

interface Fault {
  readonly message: string;
  readonly remedy: string;
  readonly offset: number | undefined;
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
      uniqueKeys: false, // compares each key with all before it: seconds for a large map; see structureFaults
      prettyErrors: false,
      lineCounter: lines,
    });
    const syntax = [...document.errors, ...document.warnings].map(({ code, message, pos }) => ({
      message,
      offset: pos[0],
      remedy: REMEDIES[code] ?? 'Correct the YAML at this place.',
    }));
    const faults = syntax.length > 0 ? syntax : structureFaults(document);
    if (faults.length > 0) {
      return faults
        .slice(0, MOST_FAULTS)
        .flatMap(({ message, remedy, offset }) =>
          issue(`This is not YAML that a profile may use: ${message}.`, remedy, at(offset)),
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

const REMEDIES: Readonly<Partial<Record<ErrorCode, string>>> = {
  TAG_RESOLVE_FAILED: 'Remove the tag: plain values are enough.',
  MULTIPLE_DOCS: 'Put each profile in a file of its own.',
  TAB_AS_INDENT: 'Indent with spaces, the same number for each level.',
  BAD_INDENT: 'Indent with spaces, the same number for each level.',
};

/** What the parser accepts and we do not: a key that stands twice, an alias of nothing. */
function structureFaults(document: Document): Fault[] {
  const faults: Fault[] = [];
  visit(document, {
    Map(_key, map) {
      const keys = new Set<string>();
      for (const item of map.items) {
        const key = keyOf(item);
        if (keys.has(key)) {
          const offset = (item.key as Node | null)?.range?.[0];
          faults.push({ message: `The key "${key}" stands twice`, remedy: 'Keep one of the two.', offset });
        }
        keys.add(key);
      }
    },
    Alias(_key, alias) {
      if (alias.resolve(document)) return;
      const remedy = 'Write the value itself.';
      faults.push({ message: `There is no anchor &${alias.source}`, remedy, offset: alias.range?.[0] });
    },
  });
  return faults;
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
