/** Judges a level by the end of its runs. */
import type { Failure, JournalEntry } from './journal.ts';
import type { Ended } from './run-command.ts';

export type Verdict = 'passed' | 'failed' | 'skipped';

/** Trouble of one file; of the level as a whole when `file` is null. */
export interface Trouble {
  file: string | null;
  failures: Failure[];
}

export interface Unsteady extends Trouble {
  /** Message of the second run, alone on the machine; undefined when it passed. */
  again: Failure[] | undefined;
}

/** Returns in words how a command ended; undefined for success. */
export function endedBadly({ code, signal, stoppedAfterMs, problem }: Ended): string | undefined {
  if (stoppedAfterMs !== undefined) return `stopped after ${Math.round(stoppedAfterMs / 60_000)} min`;
  if (problem !== undefined) return problem;
  if (signal !== null) return `killed by ${signal}`;
  return code === 0 ? undefined : `exit ${code}`;
}

/**
 * Returns the troubles of a vitest run: none exactly if it passed. A failure that no file accounts for belongs to the level, and
 * an error without an origin to the files without a result, whose worker died.
 */
export function troublesOf(journal: readonly JournalEntry[], ended: Ended): Trouble[] {
  const bad = endedBadly(ended);
  const troubles = new Map<string | null, Failure[]>();
  const add = (file: string | null, ...failures: Failure[]) =>
    troubles.set(file, [...(troubles.get(file) ?? []), ...failures]);
  const outside = (message: string): Failure => ({ test: null, message });
  const meant = new Set(journal.flatMap((entry) => (entry.kind === 'meant' ? entry.files : [])));
  const done = new Set(journal.flatMap((entry) => (entry.kind === 'ended' ? [entry.file] : [])));
  const unfinished = [...meant].filter((file) => !done.has(file));

  for (const entry of journal) {
    if (entry.kind === 'ended' && entry.failures.length > 0) add(entry.file, ...entry.failures);
    if (entry.kind === 'stray' && (entry.file !== null || unfinished.length === 0)) {
      add(entry.file, outside(`outside of any test: ${entry.message}`));
    }
  }
  const ofNobody = journal.flatMap((entry) =>
    entry.kind === 'stray' && entry.file === null ? [entry.message] : [],
  );
  for (const file of unfinished) {
    add(file, outside(['no result', bad ?? 'exit 0', ...ofNobody].join(': ')));
  }
  if (meant.size === 0) add(null, outside(`no file was run: ${bad ?? 'exit 0'}`));
  if (bad !== undefined && troubles.size === 0) add(null, outside(`every file passed, and still: ${bad}`));
  return [...troubles].map(([file, failures]) => ({ file, failures }));
}

/** Returns the files to run once more: those in trouble; null for the level as a whole, which then includes all of them. */
export function toRepeat(troubles: readonly Trouble[]): (string | null)[] {
  const files = troubles.map(({ file }) => file);
  return files.includes(null) ? [null] : files;
}

/** Returns the first troubles, each with the result of its second run. Troubles that were not run again have failed. */
export function judged(
  first: readonly Trouble[],
  again: ReadonlyMap<string | null, readonly Trouble[]>,
): Unsteady[] {
  return first.map(({ file, failures }) => {
    const second = again.get(file) ?? again.get(null);
    if (second === undefined) return { file, failures, again: failures };
    return { file, failures, again: second.length > 0 ? second.flatMap((one) => one.failures) : undefined };
  });
}

export function verdictOf(troubles: readonly Unsteady[]): Verdict {
  return troubles.every(({ again }) => again === undefined) ? 'passed' : 'failed';
}
