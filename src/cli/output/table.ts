import { cutText, displayWidth, plainText } from './plain-text.ts';

export interface Column<T> {
  readonly title: string;
  value(row: T): string;
  /** Whether the column may be cut on a narrow terminal. A column that can be copied into a command never is. */
  readonly cuttable?: boolean;
  /** Whether the column may be left out of a terminal that is too narrow for all of them, the last one first. */
  readonly spare?: boolean;
  readonly align?: 'right';
  paint?(text: string, row: T): string;
}

const GAP = 2;
const NARROWEST = 6;
/** Least width: a column cut further takes more room than it is worth. */
const READABLE = 12;

function widthOf<T>(column: Column<T>, rows: readonly T[]): number {
  return Math.max(column.title.length, ...rows.map((row) => displayWidth(plainText(column.value(row)))));
}

/** Returns the columns that fit into so much room. */
function worthShowing<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  width: number,
): readonly Column<T>[] {
  const least = columns.map((column) => {
    const wanted = widthOf(column, rows);
    return column.cuttable ? Math.min(wanted, READABLE) : wanted;
  });
  const needed = least.reduce((sum, one) => sum + one, GAP * (columns.length - 1));
  const last = columns.findLastIndex(({ spare }) => spare);
  if (needed <= width || last === -1) return columns;
  return worthShowing(columns.toSpliced(last, 1), rows, width);
}

/** Narrows the widest columns that may be cut until the line fits. */
function fitted<T>(columns: readonly Column<T>[], wanted: readonly number[], width: number): number[] {
  const widths = [...wanted];
  let excess = widths.reduce((sum, one) => sum + one, GAP * (columns.length - 1)) - width;
  while (excess > 0) {
    let widest = -1;
    for (const [index, column] of columns.entries()) {
      const size = widths[index] ?? 0;
      if (column.cuttable && size > NARROWEST && size > (widths[widest] ?? 0)) widest = index;
    }
    if (widest === -1) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess -= 1;
  }
  return widths;
}

function padded(text: string, width: number, align: 'right' | undefined): string {
  const space = ' '.repeat(Math.max(0, width - displayWidth(text)));
  return align === 'right' ? space + text : text + space;
}

/** Formats a table as aligned lines; cut to `width` columns when it is given. */
export function tableLines<T>(
  all: readonly Column<T>[],
  rows: readonly T[],
  width: number | undefined,
  paintTitle: (text: string) => string = (text) => text,
): string[] {
  const columns = width === undefined ? all : worthShowing(all, rows, width);
  const cells = rows.map((row) => columns.map((column) => plainText(column.value(row))));
  const wanted = columns.map((column) => widthOf(column, rows));
  const widths = width === undefined ? wanted : fitted(columns, wanted, width);
  const line = (texts: readonly string[], paint: (text: string, index: number) => string) =>
    texts
      .map((text, index) => {
        const size = widths[index] ?? 0;
        const last = index === texts.length - 1 && columns[index]?.align === undefined;
        const cut = cutText(text, size);
        return paint(last ? cut : padded(cut, size, columns[index]?.align), index);
      })
      .join(' '.repeat(GAP))
      .trimEnd();
  return [
    line(
      columns.map((column) => column.title),
      (text) => paintTitle(text),
    ),
    ...rows.map((row, at) =>
      line(cells[at] ?? [], (text, index) => columns[index]?.paint?.(text, row) ?? text),
    ),
  ];
}
