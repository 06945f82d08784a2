import type { Host } from '../../contract/extensions/host.ts';
import { waitText } from './relative-time.ts';
import type { Column } from './table.ts';

/** Words before the notes of a sandbox that worked. */
const WORKS = 'It works. ';

type Canary = Host['health']['canaries'][number];

/** Result of one life on one backend. */
export interface Trial {
  readonly extension: string;
  readonly ok: boolean;
  readonly ready_ms: number | null;
  readonly exec_ms: number | null;
  readonly destroyed_ms: number | null;
  readonly problem: string | null;
}

const millis = (value: unknown): string => (typeof value === 'number' ? waitText(value) : '-');

export function canaryText(canary: Canary): string {
  if (canary.failures > 0) return `failed ${canary.failures} in a row: ${canary.detail}`;
  const notes = canary.detail.startsWith(WORKS) ? `. ${canary.detail.slice(WORKS.length)}` : '';
  return `ready ${millis(canary.ready_ms)}, exec ${millis(canary.exec_ms)}, gone ${millis(canary.destroyed_ms)}${notes}`;
}

export function outcomeColumns<T extends Trial>(ended: 'GONE' | 'DESTROYED'): Column<T>[] {
  return [
    { title: 'OUTCOME', value: (row) => (row.ok ? 'works' : 'failed') },
    { title: 'READY', align: 'right', value: (row) => millis(row.ready_ms) },
    { title: 'EXEC', align: 'right', value: (row) => millis(row.exec_ms) },
    { title: ended, align: 'right', value: (row) => millis(row.destroyed_ms) },
    { title: 'PROBLEM', cuttable: true, value: (row) => row.problem ?? '-' },
  ];
}
