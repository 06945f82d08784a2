/**
 * Runs the test levels and reports on all of them, also after a failure: test.ts [LEVEL…] [-- ARGUMENTS]
 * Levels that are named run as they are, in this terminal. A run of everything gives what failed a second chance, alone.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { styleText } from 'node:util';
import type { TestLevel } from './test-levels.ts';
import { testLevels } from './test-levels.ts';
import { endedBadly } from './test-run/judge.ts';
import { endAllCommands, runCommand } from './test-run/run-command.ts';
import { runEverything } from './test-run/run-everything.ts';
import type { Outcome } from './test-run/summary.ts';
import { summaryOf, verdictLine } from './test-run/summary.ts';

process.chdir(join(import.meta.dirname, '..'));
const [wanted, passedOn] = splitArguments(process.argv.slice(2));
const unknown = wanted.filter((name) => !testLevels.some((level) => level.name === name));
if (unknown.length > 0) {
  console.error(
    `no such level: ${unknown.join(', ')}; there are: ${testLevels.map(({ name }) => name).join(', ')}`,
  );
  process.exit(2);
}

const outcomes = wanted.length > 0 ? await runNamed() : await runAll();
console.log(`\n${summaryOf(outcomes)}`);

// A run without any test has shown nothing.
const failed = outcomes.some(({ verdict }) => verdict === 'failed');
const ran = outcomes.some(({ verdict }) => verdict !== 'skipped');
process.exit(failed || !ran ? 1 : 0);

function splitArguments(given: string[]): [levels: string[], passedOn: string[]] {
  const at = given.indexOf('--');
  return at < 0 ? [given, []] : [given.slice(0, at), given.slice(at + 1)];
}

async function runNamed(): Promise<Outcome[]> {
  const chosen = testLevels.filter(({ name }) => wanted.includes(name));
  const done: Outcome[] = [];
  for (const level of chosen) done.push(await runHere(level));
  return done;
}

async function runHere({ name, what, command, skipReason }: TestLevel): Promise<Outcome> {
  console.log(styleText('bold', `\n▶ ${name}: ${what}`));
  const none = { name, troubles: [], files: [] };
  const reason = skipReason();
  if (reason !== undefined) return { ...none, verdict: 'skipped', seconds: 0, note: reason };
  const ended = await runCommand([...command, ...passedOn]);
  const note = endedBadly(ended);
  const verdict = note === undefined ? 'passed' : 'failed';
  const outcome: Outcome = { ...none, verdict, seconds: ended.seconds, note: note ?? '' };
  console.log(verdictLine(outcome));
  return outcome;
}

async function runAll(): Promise<Outcome[]> {
  const directory = mkdtempSync(join(tmpdir(), 'sandboxer-test-run-'));
  process.once('exit', () => {
    endAllCommands();
    rmSync(directory, { recursive: true, force: true });
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => process.exit(130));
  return runEverything(testLevels, directory, (text) => console.log(text));
}
