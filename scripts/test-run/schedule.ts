/** Schedule of the levels: which run at the same time. Steadiness comes before minutes. */
import type { TestLevel } from '../test-levels.ts';

/** Levels that start in their order, at most `atOnce` of them at a time. */
export interface Queue {
  levels: TestLevel[];
  atOnce: number;
}

/** The queues of a stage run beside each other; a stage begins when the one before has ended. */
export type Stage = Queue[];

/**
 * Checks first, side by side; then levels that wait for processes, in turn, with those that only compute behind them; and last,
 * one by one, levels that look at the whole machine.
 */
export function stagesOf(levels: readonly TestLevel[]): Stage[] {
  const of = (company: TestLevel['company']) => levels.filter((level) => level.company === company);
  const stages: Stage[] = [
    [{ levels: of('checks'), atOnce: 2 }],
    [
      { levels: of('in turn'), atOnce: 1 },
      { levels: of('background'), atOnce: 1 },
    ],
    [{ levels: of('alone'), atOnce: 1 }],
  ];
  return stages
    .map((stage) => stage.filter((queue) => queue.levels.length > 0))
    .filter((stage) => stage.length > 0);
}

export async function runStages(
  stages: readonly Stage[],
  run: (level: TestLevel) => Promise<void>,
): Promise<void> {
  for (const stage of stages) await Promise.all(stage.map((queue) => runQueue(queue, run)));
}

async function runQueue({ levels, atOnce }: Queue, run: (level: TestLevel) => Promise<void>): Promise<void> {
  const waiting = [...levels];
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await run(next);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}
