import type { Document, ErrorCode, Node, Pair } from 'yaml';
import { isMap, isScalar, isSeq, LineCounter } from 'yaml';
import { composeDocument, MOST_FAULTS, TooManyFaults } from './compose-document.ts';
import { offsetOfNode, ValueReader } from './value-reader.ts';
import type { YamlFault } from './yaml-fault.ts';
import { Refusal } from './yaml-fault.ts';
import type { YamlLimits } from './yaml-limits.ts';
import { PAGE } from './yaml-limits.ts';

export type FieldPath = readonly (string | number)[];

export interface YamlPosition {
  readonly line: number | null;
  readonly column: number | null;
}

export interface YamlDocument {
  readonly value: unknown;
  /** Lexical tokens of the text, as `YamlLimits` counts them. */
  readonly tokens: number;
  /** Returns the position of a field, or of its nearest parent if the field is missing. */
  locate(path: FieldPath): YamlPosition;
}

export interface YamlOptions {
  readonly limits?: YamlLimits;
  /** Whether a key `<<` merges maps, as compose files have it. */
  readonly merge?: boolean;
}

const MOST_CHARACTERS = 200;
const NOWHERE: YamlPosition = { line: null, column: null };

const REMEDIES: Readonly<Partial<Record<ErrorCode, string>>> = {
  TAG_RESOLVE_FAILED: 'Remove the tag: plain values are enough.',
  TAB_AS_INDENT: 'Indent with spaces, the same number for each level.',
  BAD_INDENT: 'Indent with spaces, the same number for each level.',
};

/**
 * Reads YAML that comes from outside, as the only reader: YAML 1.2, core schema, one document, no tags, text as keys, no key
 * twice. Time and memory grow no faster than the text, and both have an upper bound.
 */
export function readYaml(text: string, options: YamlOptions = {}): YamlDocument | readonly YamlFault[] {
  const { limits = PAGE, merge = false } = options;
  const lines = new LineCounter();
  const at = (offset: number | undefined): YamlPosition => {
    if (offset === undefined) return NOWHERE;
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  try {
    if (text.length > limits.bytes || byteLength(text) > limits.bytes)
      throw new Refusal(
        'TOO_LARGE',
        `The document is larger than ${limits.bytes / 1024} KiB`,
        'Write a shorter document.',
      );
    const endsAt = performance.now() + limits.milliseconds;
    const { document, tokens } = composeDocument(text, limits, lines, endsAt);
    const faults = syntaxFaults(document, at);
    if (faults.length > 0) return faults;
    if (document.directives?.yaml.version !== '1.2')
      throw new Refusal(
        'BAD_VERSION',
        'The document asks for another version of YAML',
        'Remove the %YAML directive.',
        0,
      );
    const { value } = new ValueReader(limits, merge, endsAt).read(document.contents as Node | null);
    return { value, tokens, locate: (path) => at(offsetOf(document, path)) };
  } catch (error) {
    if (error instanceof TooManyFaults) return syntaxFaults(error, at);
    if (error instanceof Refusal) {
      const { code, message, remedy, offset } = error;
      return [{ code, message, remedy, ...at(offset) }];
    }
    const reason = error instanceof Error ? error.message.slice(0, MOST_CHARACTERS) : String(error);
    const remedy = 'Write the document without deep nesting and with few aliases.';
    return [{ code: 'UNREADABLE', message: `The document cannot be read: ${reason}`, remedy, ...NOWHERE }];
  }
}

export function isFaulty(read: YamlDocument | readonly YamlFault[]): read is readonly YamlFault[] {
  return Array.isArray(read);
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

function syntaxFaults(
  { errors, warnings }: Pick<TooManyFaults, 'errors' | 'warnings'>,
  at: (offset: number) => YamlPosition,
): YamlFault[] {
  return [...errors.slice(0, MOST_FAULTS), ...warnings.slice(0, MOST_FAULTS)]
    .slice(0, MOST_FAULTS)
    .map(({ code, message, pos }) => ({
      code,
      message: (message.split('\n', 1)[0] as string).slice(0, MOST_CHARACTERS),
      remedy: REMEDIES[code] ?? 'Correct the YAML at this place.',
      ...at(pos[0]),
    }));
}

/** The offset of the key that leads to a field, or of the item in a list. */
function offsetOf(document: Document.Parsed, path: FieldPath): number | undefined {
  let node = document.contents as Node | null;
  let found = offsetOfNode(node);
  for (const step of path) {
    const pair = isMap(node) ? node.items.find((item) => hasKey(item, step)) : undefined;
    const item = isSeq(node) ? (node.items[Number(step)] as Node | undefined) : undefined;
    const next = pair ? (pair.key as Node) : item;
    if (!next?.range) return found;
    found = next.range[0];
    node = pair ? (pair.value as Node | null) : (item ?? null);
  }
  return found;
}

function hasKey({ key }: Pair, step: string | number): boolean {
  return isScalar(key) && String(key.value) === String(step);
}
