import type { StaleItem, StaleReport } from '../../contract/sandboxes/stale.ts';
import type { Printer } from './printer.ts';
import { shortDuration } from './relative-time.ts';
import type { Column } from './table.ts';

export function staleColumns(): Column<StaleItem>[] {
  return [
    { title: 'KIND', value: (row) => row.kind },
    { title: 'WHAT', value: (row) => row.what },
    { title: 'WHERE', value: (row) => [row.extension, row.host].filter(Boolean).join(' on ') || '-' },
    {
      title: 'AGE',
      align: 'right',
      value: (row) => (row.age_seconds === null ? '-' : shortDuration(row.age_seconds)),
    },
    { title: 'EVIDENCE', cuttable: true, value: (row) => row.evidence.join('; ') },
  ];
}

/** Prints the places that were not searched: silence would say that nothing is there. */
export function tellUnseen(printer: Printer, unseen: StaleReport['unseen']): void {
  for (const { extension, host, detail } of unseen)
    printer.note(`Not looked at: ${extension}${host === null ? '' : ` on ${host}`}: ${detail}`);
}
