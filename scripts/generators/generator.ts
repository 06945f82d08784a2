/** Generated file: it is written by `npm run generate` and never by hand. */
export interface Generator {
  /** Path from the root of the repository. */
  readonly file: string;
  /** Returns the whole text. The same sources give the same text, byte for byte. */
  render(): string;
}

/** Returns a page that begins with its source. */
export function page(source: string, ...paragraphs: string[]): string {
  const origin = `<!-- Written by \`npm run generate\` from ${source}. Do not edit. -->`;
  return `${[origin, ...paragraphs].join('\n\n')}\n`;
}

export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(header), `|${header.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
