/** Prints the end of a run: slow, failed and unsteady files, and a table whose last line counts. */
import { styleText } from 'node:util';
import type { Failure, FileResult } from './journal.ts';
import type { Unsteady, Verdict } from './judge.ts';

export interface Outcome {
  name: string;
  verdict: Verdict;
  seconds: number;
  /** Reason why the level was skipped, or how it ended. */
  note: string;
  troubles: Unsteady[];
  files: FileResult[];
}

const COLOUR = { passed: 'green', failed: 'red', skipped: 'yellow' } as const;
const SLOWEST = 10;
const LONGEST_MESSAGE = 30;

export function summaryOf(outcomes: readonly Outcome[]): string {
  return [slowest(outcomes), unsteady(outcomes), failed(outcomes), table(outcomes)]
    .filter((part) => part !== '')
    .join('\n\n');
}

export function verdictLine({ name, verdict, seconds, note }: Outcome): string {
  return styleText(COLOUR[verdict], `${name} ${verdict} in ${seconds.toFixed(1)} s ${note}`.trimEnd());
}

function slowest(outcomes: readonly Outcome[]): string {
  const files = outcomes
    .flatMap(({ name, files: ofLevel }) => ofLevel.map((result) => ({ name, ...result })))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, SLOWEST);
  if (files.length === 0) return '';
  const lines = files.map(
    ({ name, file, seconds }) => `${`${seconds.toFixed(1)} s`.padStart(9)}  ${name}  ${file}`,
  );
  return [styleText('bold', `the slowest ${files.length} files`), ...lines].join('\n');
}

function unsteady(outcomes: readonly Outcome[]): string {
  const lines = outcomes.flatMap(({ name, troubles }) =>
    troubles
      .filter(({ again }) => again === undefined)
      .flatMap(({ file, failures }) => told(name, file, failures)),
  );
  if (lines.length === 0) return '';
  return [styleText(['bold', 'yellow'], 'unsteady: failed once, passed alone'), ...lines].join('\n');
}

function failed(outcomes: readonly Outcome[]): string {
  const lines = outcomes.flatMap(({ name, troubles }) =>
    troubles.flatMap(({ file, again }) => (again === undefined ? [] : told(name, file, again))),
  );
  if (lines.length === 0) return '';
  return [styleText(['bold', 'red'], 'failed'), ...lines].join('\n');
}

function told(level: string, file: string | null, failures: readonly Failure[]): string[] {
  return failures.flatMap(({ test, message }) => {
    const lines = message.split('\n');
    const shown = lines.slice(0, LONGEST_MESSAGE).map((line) => `      ${line}`);
    const left = lines.length - shown.length;
    const place = [file, test].filter((part) => part !== null).join(' > ');
    return [`  ${level}  ${place}`.trimEnd(), ...shown, ...(left > 0 ? [`      … ${left} more lines`] : [])];
  });
}

function table(outcomes: readonly Outcome[]): string {
  const width = Math.max(...outcomes.map(({ name }) => name.length));
  const rows = outcomes.map(({ name, verdict, seconds, note }) => {
    const time = verdict === 'skipped' ? '' : `${seconds.toFixed(1)} s`;
    const shown = styleText(COLOUR[verdict], verdict.padEnd(7));
    return `${name.padEnd(width)}  ${shown}  ${time.padStart(8)}  ${note}`.trimEnd();
  });
  const count = (wanted: Verdict) => outcomes.filter(({ verdict }) => verdict === wanted).length;
  return `${rows.join('\n')}\n\n${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped`;
}
