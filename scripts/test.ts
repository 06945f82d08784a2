/** Runs the test levels in turn and reports on all of them, also after a failure: test.ts [LEVEL…] [-- ARGUMENTS] */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { styleText } from 'node:util';
import type { TestLevel } from './test-levels.ts';
import { testLevels } from './test-levels.ts';

type Verdict = 'passed' | 'failed' | 'skipped';

interface Outcome {
  name: string;
  verdict: Verdict;
  seconds: number;
  note: string;
}

const COLOUR = { passed: 'green', failed: 'red', skipped: 'yellow' } as const;

process.chdir(join(import.meta.dirname, '..'));
const [wanted, passedOn] = splitArguments(process.argv.slice(2));
const unknown = wanted.filter((name) => !testLevels.some((level) => level.name === name));
if (unknown.length > 0) {
  console.error(
    `no such level: ${unknown.join(', ')}; there are: ${testLevels.map(({ name }) => name).join(', ')}`,
  );
  process.exit(2);
}

const chosen = wanted.length > 0 ? testLevels.filter(({ name }) => wanted.includes(name)) : testLevels;
const outcomes = chosen.map(runLevel);
report(outcomes);

// A run in which nothing ran has shown nothing.
const failed = outcomes.some(({ verdict }) => verdict === 'failed');
const ran = outcomes.some(({ verdict }) => verdict !== 'skipped');
process.exit(failed || !ran ? 1 : 0);

function splitArguments(given: string[]): [levels: string[], passedOn: string[]] {
  const at = given.indexOf('--');
  return at < 0 ? [given, []] : [given.slice(0, at), given.slice(at + 1)];
}

function runLevel({ name, what, command, skipReason }: TestLevel): Outcome {
  console.log(styleText('bold', `\n▶ ${name}: ${what}`));
  const reason = skipReason();
  if (reason !== undefined) {
    console.log(`skipped: ${reason}`);
    return { name, verdict: 'skipped', seconds: 0, note: reason };
  }
  const [program = '', ...rest] = command;
  const startedAt = performance.now();
  const { status, signal, error } = spawnSync(program, [...rest, ...passedOn], { stdio: 'inherit' });
  const seconds = (performance.now() - startedAt) / 1000;
  const verdict: Verdict = status === 0 ? 'passed' : 'failed';
  const note =
    verdict === 'passed' ? '' : (error?.message ?? (signal ? `killed by ${signal}` : `exit ${status}`));
  console.log(styleText(COLOUR[verdict], `${verdict} in ${seconds.toFixed(1)} s ${note}`.trimEnd()));
  return { name, verdict, seconds, note };
}

function report(all: Outcome[]): void {
  const width = Math.max(...all.map(({ name }) => name.length));
  console.log('');
  for (const { name, verdict, seconds, note } of all) {
    const time = verdict === 'skipped' ? '' : `${seconds.toFixed(1)} s`;
    const line = `${name.padEnd(width)}  ${styleText(COLOUR[verdict], verdict.padEnd(7))}  ${time.padStart(8)}  ${note}`;
    console.log(line.trimEnd());
  }
  const count = (wantedVerdict: Verdict) => all.filter(({ verdict }) => verdict === wantedVerdict).length;
  console.log(`\n${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped`);
}
