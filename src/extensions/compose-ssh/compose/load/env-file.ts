import type { Variables } from './interpolate.ts';
import { interpolateText } from './interpolate.ts';

const LINE = /^\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*(?:=[ \t]*([\s\S]*))?$/;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

function unquoted(value: string): string {
  const comment = value.search(/\s#/);
  return (comment === -1 ? value : value.slice(0, comment)).trim();
}

/** Returns whether a quoted value continues on the next line. A line break behind a backslash belongs to the value. */
function isOpen(line: string, quote: string): boolean {
  for (let at = 0; at < line.length; at += 1) {
    if (line[at] === quote) return false;
    if (line[at] === '\\' && quote === '"') at += 1;
  }
  return true;
}

/** Yields statements: one line each, or more for a quoted value with line breaks. */
function* statements(text: string): Generator<string> {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  for (let at = 0; at < lines.length; at += 1) {
    let line = lines[at] ?? '';
    const [, quote] = /=[ \t]*(["'])/.exec(line) ?? [];
    if (quote !== undefined && !/^\s*#/.test(line)) {
      const begin = line.indexOf(quote) + 1;
      const parts = [line];
      for (let open = isOpen(line.slice(begin), quote); open && at + 1 < lines.length; ) {
        const more = lines[++at] ?? '';
        parts.push(more);
        open = isOpen(more, quote);
      }
      line = parts.join('\n');
    }
    yield line;
  }
}

/**
 * Parses a `.env` or an `env_file`: `NAME=value`, quotes, comments, `export`. A name alone is looked up in `around`; double
 * quoted and bare values may name variables.
 */
export function parseEnvFile(text: string, around: Variables, file: string): Map<string, string> {
  const values = new Map<string, string>();
  const known = around.over(values);
  for (const line of statements(text.replace(/^\uFEFF/, ''))) {
    if (line.trim() === '' || /^\s*#/.test(line)) continue;
    const [, name, raw] = LINE.exec(line) ?? [];
    if (name === undefined) continue;
    if (raw === undefined) {
      const outer = around.get(name);
      if (outer !== undefined) values.set(name, outer);
      continue;
    }
    const single = /^'([^']*)'/.exec(raw);
    const double = /^"((?:[^"\\]|\\[\s\S])*)"/.exec(raw);
    if (single) values.set(name, single[1] ?? '');
    else {
      const text = double
        ? (double[1] ?? '').replaceAll(/\\([\s\S])/g, (whole, sign: string) =>
            sign === '$' ? '$$' : (ESCAPES[sign] ?? (/["\\]/.test(sign) ? sign : whole)),
          )
        : unquoted(raw);
      values.set(name, interpolateText(text, known, `${file}: ${name}`));
    }
  }
  return values;
}
