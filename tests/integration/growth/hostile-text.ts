import type { Case } from './growth.ts';

/** What parsers stumble over when it comes often: brackets, separators, wildcards, references, escapes. */
// biome-ignore-start lint/suspicious/noTemplateCurlyInString: compose variables
const FRAGMENTS = [
  'a', 'a ', 'ab', ' ', '\t', '\n', '\r', '\r\n', '/', '//', 'a/', '../', './', '..', '.', ':', '::', '-', '--', '_',
  '*', '**/', '*a', '*/', '?', '!', '[', ']', '[a', '[]', '{', '}', '{}', '{a: ', '[[],', '{"a":', '"a",', '"', '\'',
  '\\', '\\"', '\\u0000', '$', '$$', '${', '${A', '${A:-', '${A}', '$A', '#', '- ', '- - ', '&a ', '*a ', '? ', 'a: b\n',
  'a: &a [b]\n', '<<: *a\n', 'a=b\n', 'A="\n', 'A=$A\n', '- a\n', '  - a\n', '|', '>', '@', '@{', '%', '%41', '%zz', '&',
  'a=1&', '=', ';', 'a;', '; ', ',', 'a,', ', ', '0', '1', '9.', '1-', '0x', 'd', '1d', '~', '\u0000', 'é', '😀', '\ud800',
  '\u2028', '127.0.0.1,', '::1,', 'charset=', 'deb ', 'export ',
]; // biome-ignore format: a table
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: compose variables

/** Before and after the repetition: nothing, or something that lets it begin and then fail. */
const AROUND = [
  { begin: '', end: '' },
  { begin: 'a', end: '!\u0001' },
] as const;

function repeated(fragment: string, size: number): string {
  return fragment.repeat(Math.ceil(size / fragment.length));
}

/** A parser of text with every fragment, alone and between something that fits and something that does not. */
export function textCases(read: (text: string) => unknown): Case[] {
  return FRAGMENTS.flatMap((fragment) =>
    AROUND.map(({ begin, end }) => ({
      name: `${JSON.stringify(begin)} + ${JSON.stringify(fragment)} × n + ${JSON.stringify(end)}`,
      run: (size: number) => read(`${begin}${repeated(fragment, size)}${end}`),
    })),
  );
}

/** Lines that differ: keys, names and values that are all others. */
export function lineCases(
  read: (text: string) => unknown,
  lines: Readonly<Record<string, (n: number) => string>>,
): Case[] {
  return Object.entries(lines).map(([name, line]) => ({
    name,
    run: (count: number) => read(Array.from({ length: count }, (_, n) => line(n)).join('\n')),
  }));
}

/** Opened n times, closed n times. */
export function nestedCases(read: (text: string) => unknown): Case[] {
  const pairs = [['{', '}'], ['[', ']'], ['{a: ', '}'], ['{"a":', '}'], ['[[', ']]'], ['? ', ''], ['- ', ''], ['${A:-', '}'], ['"', '"']] as const; // biome-ignore format: a table
  return pairs.map(([open, close]) => ({
    name: `${open} × n ${close} × n`,
    run: (size: number) => read(repeated(open, size) + close.repeat(Math.ceil(size / open.length))),
  }));
}
