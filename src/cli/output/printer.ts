import type { WriteStream } from 'node:tty';
import type { Colors } from './colors.ts';
import { colorsFor } from './colors.ts';
import { plainLines, plainText } from './plain-text.ts';
import type { Column } from './table.ts';
import { tableLines } from './table.ts';
import { wrapped } from './wrapped-text.ts';

export type Detail = readonly [name: string, value: string | null, paint?: (text: string) => string];

export interface PrinterOptions {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly color: boolean;
}

function colorful(stream: Partial<WriteStream>, options: PrinterOptions): boolean {
  const { NO_COLOR, TERM } = process.env;
  return options.color && !NO_COLOR && TERM !== 'dumb' && stream.isTTY === true;
}

const NARROWEST_TERMINAL = 40;

function terminalWidth(): number | undefined {
  const { isTTY, columns } = process.stdout;
  return isTTY && columns ? Math.max(columns, NARROWEST_TERMINAL) : undefined;
}

/** Prints results on stdout, everything else on stderr. */
export class Printer {
  readonly json: boolean;
  readonly quiet: boolean;
  /** Colours of stdout and of stderr: one may be a terminal and the other not. */
  readonly out: Colors;
  readonly err: Colors;

  constructor(options: PrinterOptions) {
    this.json = options.json;
    this.quiet = options.quiet;
    this.out = colorsFor(colorful(process.stdout, options));
    this.err = colorsFor(colorful(process.stderr, options));
  }

  /** Prints a wire object in JSON mode, otherwise the output of `human`. */
  result(value: unknown, human: () => void): void {
    if (this.json) this.document(value);
    else human();
  }

  /** Prints one JSON document on one line; for a person at a terminal, on several. */
  document(value: unknown): void {
    const indent = process.stdout.isTTY ? 2 : undefined;
    process.stdout.write(`${JSON.stringify(value, null, indent)}\n`);
  }

  /** Prints one item of a stream. */
  item(value: unknown): void {
    process.stdout.write(`${JSON.stringify(value)}\n`);
  }

  line(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  /** Returns the lines that a text needs on the terminal; one without a terminal. */
  wrapped(text: string, taken: number): string[] {
    return wrapped(text, terminalWidth(), taken);
  }

  table<T>(columns: readonly Column<T>[], rows: readonly T[]): void {
    for (const line of tableLines(columns, rows, terminalWidth(), this.out.dim)) this.line(line);
  }

  /** Prints names and values, one below the other. `null` values are left out. */
  details(pairs: readonly Detail[]): void {
    const shown = pairs.filter(([, value]) => value !== null);
    const width = Math.max(0, ...shown.map(([name]) => name.length));
    const indent = ' '.repeat(width + 2);
    for (const [name, value, paint = (text: string) => text] of shown) {
      const lines = plainLines(value ?? '')
        .split('\n')
        .flatMap((line) => this.wrapped(line, width + 2))
        .map(paint);
      this.line(`${this.out.dim(name.padEnd(width))}  ${lines.join(`\n${indent}`)}`);
    }
  }

  /** Prints for a person; not with `--quiet` or `--json`. */
  note(text: string): void {
    if (this.quiet || this.json) return;
    process.stderr.write(`${plainText(text)}\n`);
  }

  /** Prints a warning, even with `--quiet`. */
  warn(text: string): void {
    if (this.json) return;
    process.stderr.write(`${this.err.yellow('warning:')} ${plainText(text)}\n`);
  }
}
