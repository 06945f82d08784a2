/** Journal of a vitest run, one JSON line for each event: a killed run has recorded all that ended before. */
export interface Failure {
  /** Null: an error outside of any test, such as a hook or a process that ended. */
  test: string | null;
  message: string;
}

export interface FileResult {
  file: string;
  failures: Failure[];
  seconds: number;
}

export type JournalEntry =
  | { kind: 'meant'; files: string[] }
  | ({ kind: 'ended' } & FileResult)
  /** Error that no test threw; `file` is null where vitest cannot tell its origin. */
  | { kind: 'stray'; file: string | null; message: string };

/** A last line that was cut off is left out: its writer was killed. */
export function parseJournal(text: string): JournalEntry[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as JournalEntry);
}
