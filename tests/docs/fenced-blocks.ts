/** A fenced block of a Markdown file: ```` ```sh exit=4 ````. */
export interface FencedBlock {
  readonly language: string;
  /** Whatever follows the language, as `name=value`. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly text: string;
  /** Of its first line of text, counted from 1. */
  readonly line: number;
  /** Nothing but empty lines stands between it and the block before. */
  readonly follows: boolean;
}

export function fencedBlocks(markdown: string): FencedBlock[] {
  const blocks: FencedBlock[] = [];
  let open: { info: string; line: number; follows: boolean; lines: string[] } | null = null;
  let untouched = false;
  for (const [index, line] of markdown.split('\n').entries()) {
    if (open === null) {
      const fence = /^```([^`]*)$/.exec(line);
      if (fence) open = { info: (fence[1] ?? '').trim(), line: index + 2, follows: untouched, lines: [] };
      else if (line.trim() !== '') untouched = false;
      continue;
    }
    if (line !== '```') {
      open.lines.push(line);
      continue;
    }
    const [language = '', ...words] = open.info.split(/\s+/);
    const attributes = Object.fromEntries(words.map((word) => word.split('=', 2) as [string, string]));
    blocks.push({
      language,
      attributes,
      text: open.lines.join('\n'),
      line: open.line,
      follows: open.follows,
    });
    untouched = true;
    open = null;
  }
  if (open !== null) throw new Error(`The fenced block in line ${open.line} does not end.`);
  return blocks;
}
