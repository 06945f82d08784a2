import { styleText } from 'node:util';
import type { TestLevel } from '../test-levels.ts';
import type { Trouble } from './judge.ts';
import { judged, toRepeat, verdictOf } from './judge.ts';
import { LevelRun } from './run-level.ts';
import { runStages, stagesOf } from './schedule.ts';
import type { Outcome } from './summary.ts';
import { verdictLine } from './summary.ts';

const PROGRESS_EVERY_MS = 60_000;
/** Time after which nothing is run again: a run with many failures ends in good time. */
const LAST_REPEAT_AFTER_MS = 60 * 60_000;

/**
 * Runs every level, then each failed file once more, alone: a file that passes then failed for want of a quiet machine, which is
 * reported and is no failure. `directory` takes the logs; `say` gets each level's output as a whole.
 */
export async function runEverything(
  levels: readonly TestLevel[],
  directory: string,
  say: (text: string) => void,
): Promise<Outcome[]> {
  const startedAt = performance.now();
  const outcomes = new Map<string, Outcome>();
  const running = new Set<LevelRun>();
  const progress = setInterval(() => {
    if (running.size > 0) say(`… ${[...running].map((run) => run.progress).join('; ')}`);
  }, PROGRESS_EVERY_MS);

  async function runOne(level: TestLevel, file: string | null, title: string) {
    const run = new LevelRun(level, directory);
    running.add(run);
    const { ended, troubles } = await run.run(file);
    running.delete(run);
    say(`${styleText('bold', `\n▶ ${title}`)}\n${run.said.trimEnd()}`.trimEnd());
    return { ended, troubles, files: run.files };
  }

  async function runFirst(level: TestLevel): Promise<void> {
    const { name, what, skipReason } = level;
    const reason = skipReason();
    if (reason !== undefined) {
      say(`${styleText('bold', `\n▶ ${name}: ${what}`)}\nskipped: ${reason}`);
      outcomes.set(name, { name, verdict: 'skipped', seconds: 0, note: reason, troubles: [], files: [] });
      return;
    }
    say(`… ${name} begins`);
    const { ended, troubles, files } = await runOne(level, null, `${name}: ${what}`);
    const { seconds } = ended;
    const outcome = outcomeOf(level, seconds, troubles, new Map(), files);
    outcomes.set(name, outcome);
    say(verdictLine(outcome));
  }

  async function runAgain(level: TestLevel): Promise<void> {
    const { name, again } = level;
    const first = outcomes.get(name);
    if (first === undefined || first.verdict !== 'failed' || again === 'never') return;
    const seconds = new Map<string | null, readonly Trouble[]>();
    let took = first.seconds;
    for (const file of toRepeat(first.troubles)) {
      if (performance.now() - startedAt > LAST_REPEAT_AFTER_MS) {
        say(`too late to run ${file ?? name} again`);
        break;
      }
      const { ended, troubles } = await runOne(level, file, `${name}, once more and alone: ${file ?? 'all'}`);
      seconds.set(file, troubles);
      took += ended.seconds;
    }
    outcomes.set(name, outcomeOf(level, took, first.troubles, seconds, first.files));
  }

  try {
    await runStages(stagesOf(levels), runFirst);
    for (const level of levels) await runAgain(level);
  } finally {
    clearInterval(progress);
  }
  return levels.flatMap(({ name }) => outcomes.get(name) ?? []);
}

function outcomeOf(
  { name }: TestLevel,
  seconds: number,
  first: readonly Trouble[],
  second: ReadonlyMap<string | null, readonly Trouble[]>,
  files: Outcome['files'],
): Outcome {
  const troubles = judged(first, second);
  const verdict = verdictOf(troubles);
  const failed = troubles.filter(({ again }) => again !== undefined).length;
  const unsteady = troubles.length - failed;
  const note = [failed > 0 ? `${failed} failed` : '', unsteady > 0 ? `${unsteady} unsteady` : '']
    .filter((part) => part !== '')
    .join(', ');
  return { name, verdict, seconds, note, troubles, files };
}
