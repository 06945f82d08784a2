import type { Result } from './harness.ts';

const FIRST = ['name', 'unit', 'n', 'p50', 'p95', 'p99', 'min', 'max'];
const LAST = ['baseline', 'ratio'];

/** Formats results as aligned columns for a person: the fixed ones around the details that the results carry. */
export function resultTable(results: readonly Result[]): string {
  const details = new Set(results.flatMap((result) => Object.keys(result)));
  const columns = [
    ...FIRST,
    ...[...details].filter((key) => !FIRST.includes(key) && !LAST.includes(key)),
    ...LAST,
  ];
  const rows = [columns, ...results.map((result) => columns.map((column) => String(result[column] ?? '-')))];
  const widths = columns.map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)));
  return rows
    .map((row) => row.map((cell, index) => align(cell, index, widths[index] ?? 0)).join('  '))
    .join('\n');
}

const align = (cell: string, index: number, width: number) =>
  index < 2 ? cell.padEnd(width) : cell.padStart(width);
