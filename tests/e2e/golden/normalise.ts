/** The directory of the run, and what else stands for something of this machine. */
export type Known = readonly (readonly [text: string, shown: string])[];

const CLEAR_LINE = '\r\x1b[2K';
const HEADER = /^ *[A-Z]+(?: [A-Z]+)*(?: {2,}[A-Z]+(?: [A-Z]+)*)+$/;
const GAP = '  ';

/** What a terminal shows in the end: progress that was drawn and taken away is gone. */
function asShown(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((line) => line.split(CLEAR_LINE).at(-1))
    .join('\n');
}

/** Ids, times and durations differ from run to run; their form does not. */
function steady(text: string): string {
  return text
    .replace(/\breq_[a-z0-9]+/g, 'req_…')
    .replace(/\b(sbx|snap|key|evt|grant|wh)_[a-z0-9]{16,}/g, '$1_…')
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z/g, '0000-00-00 00:00:00Z')
    .replace(/ready in [\d.]+m?s/g, 'ready in 0.1s')
    .replace(/\bv\d+\.\d+\.\d+/g, 'v0.0.0')
    .replace(/^\d+s$/, '1s')
    .replace(/(^| {2,})(?:(?:\d+[sm])+ ago|now)$/, '$11s ago')
    .replace(/\bin \d+m(?:\d+s)?/g, 'in 15m');
}

/** Where every line of a table is blank, two columns wide or more: the gaps between its columns. */
function columnsOf(lines: readonly string[]): [start: number, end: number][] {
  const width = Math.max(...lines.map((line) => line.length));
  const blank = (at: number) => lines.every((line) => (line[at] ?? ' ') === ' ');
  const columns: [number, number][] = [];
  let start = 0;
  for (let at = 0; at <= width; at += 1) {
    if (at < width && !(blank(at) && blank(at + 1))) continue;
    if (at > start) columns.push([start, at]);
    while (at < width && blank(at)) at += 1;
    start = at;
  }
  return columns;
}

/** The same table with steady values, aligned anew: a column is as wide as its widest value. */
function steadyTable(lines: readonly string[]): string[] {
  const cells = lines.map((line) => columnsOf(lines).map(([start, end]) => line.slice(start, end)));
  const count = cells[0]?.length ?? 0;
  const columns = Array.from({ length: count }, (_, at) => {
    const texts = cells.map((row) => row[at] ?? '');
    const right = texts.some((text) => text.startsWith(' ') && text.trim() !== '');
    const values = texts.map((text) => steady(text.trim()));
    const width = Math.max(...values.map((value) => value.length));
    return values.map((value) => (right ? value.padStart(width) : value.padEnd(width)));
  });
  return lines.map((_, row) =>
    columns
      .map((column) => column[row])
      .join(GAP)
      .trimEnd(),
  );
}

export function normalised(text: string, known: Known): string {
  let shown = asShown(text);
  for (const [value, name] of known) shown = shown.replaceAll(value, name);
  const lines = shown.split('\n');
  const done: string[] = [];
  while (lines.length > 0) {
    const end = HEADER.test(lines[0] ?? '')
      ? lines.findIndex((line) => line === '' || line.startsWith('['))
      : 0;
    if (end > 1) done.push(...steadyTable(lines.splice(0, end)));
    else done.push(steady(lines.shift() ?? ''));
  }
  return done.join('\n');
}
