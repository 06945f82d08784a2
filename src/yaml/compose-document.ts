import type { CST, Document, LineCounter, YAMLParseError, YAMLWarning } from 'yaml';
import { Composer, Lexer, Parser } from 'yaml';
import { Refusal } from './yaml-fault.ts';
import type { YamlLimits } from './yaml-limits.ts';

/** Tokens between two looks at the clock. */
const TOKENS_PER_LOOK = 256;

/** The most errors and warnings that are reported of one text. */
export const MOST_FAULTS = 20;

/** Thrown once a text has more faults than are reported: one text in quotes can have a fault in every second byte. */
export class TooManyFaults extends Error {
  readonly errors: readonly YAMLParseError[];
  readonly warnings: readonly YAMLWarning[];

  constructor({ errors, warnings }: Pick<Document.Parsed, 'errors' | 'warnings'>) {
    super('The document has too many faults');
    this.errors = errors;
    this.warnings = warnings;
  }
}

/** The composer's own sink of errors and warnings, which its types hide. */
interface FaultSink {
  onError(...fault: unknown[]): void;
}

/** Ends the work of a composer at `MOST_FAULTS`. Each fault is an object with a stack trace. */
function boundFaults(composer: Composer): void {
  const sink = composer as unknown as FaultSink;
  const { onError } = sink;
  let faults = 0;
  sink.onError = (...fault) => {
    onError(...fault);
    faults += 1;
    if (faults >= MOST_FAULTS) throw new TooManyFaults(composer.streamInfo());
  };
}

export function requireTime(endsAt: number): void {
  if (performance.now() > endsAt)
    throw new Refusal('TOO_SLOW', 'The document takes too long to read', 'Write a shorter document.');
}

/**
 * The syntax tree of the one document in a text. The parser keeps its open collections on a list, and the composer then
 * recurses over them: depth is bounded on that list, before anything recurses.
 */
export function composeDocument(
  text: string,
  limits: YamlLimits,
  lines: LineCounter,
  endsAt: number,
): { readonly document: Document.Parsed; readonly tokens: number } {
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    merge: false,
    uniqueKeys: false, // compares each key with all before it; `ValueReader` does that with a set
    prettyErrors: false,
    logLevel: 'error',
  });
  boundFaults(composer);
  let document: Document.Parsed | null = null;
  const take = (made: Iterable<Document.Parsed>) => {
    for (const next of made) {
      if (document) {
        const [offset] = next.range;
        throw new Refusal(
          'MULTIPLE_DOCS',
          'The text holds several documents',
          'Put each document in a file of its own.',
          offset,
        );
      }
      document = next;
    }
  };
  let misplaced = 0;
  const compose = (tokens: Iterable<CST.Token>) => {
    for (const token of tokens) {
      if (token.type === 'error') misplaced += 1;
      take(composer.next(token));
    }
  };
  let tokens = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens += 1;
    if (tokens > limits.tokens)
      throw new Refusal(
        'TOO_LARGE',
        `The document has more than ${limits.tokens} tokens`,
        'Write a shorter document.',
        parser.offset,
      );
    if (tokens % TOKENS_PER_LOOK === 0) requireTime(endsAt);
    compose(parser.next(lexeme));
    if (parser.stack.length > limits.depth + 2) throw tooDeep(limits, parser.offset);
    if (misplaced >= MOST_FAULTS) break;
  }
  if (misplaced < MOST_FAULTS) compose(parser.end());
  take(composer.end(true, text.length));
  return { document: document as unknown as Document.Parsed, tokens };
}

export function tooDeep({ depth }: YamlLimits, offset?: number): Refusal {
  const message = `The document is nested deeper than ${depth} levels`;
  return new Refusal('TOO_DEEP', message, 'Nest fewer lists and maps.', offset);
}
