import { displayWidth } from './plain-text.ts';

/** Wraps lines at `width` columns, between words; `taken` columns of each are used by the text before. */
export function wrapped(text: string, width: number | undefined, taken = 0): string[] {
  const room = width === undefined ? Number.POSITIVE_INFINITY : Math.max(20, width - taken);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && displayWidth(line) + 1 + displayWidth(word) > room) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
