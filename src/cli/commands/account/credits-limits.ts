import type { Command } from 'commander';
import type { CreditLimits } from '../../../contract/money/credits.ts';
import { chosenArgument } from '../../args/choices.ts';
import { wholeNumber } from '../../args/numbers.ts';
import type { Invocation } from '../../invocation/invocation.ts';

const NO_LIMIT = 'none';
type Limit = number | typeof NO_LIMIT;

interface LimitFlags {
  readonly maxLiving?: Limit;
  readonly perMinute?: Limit;
}

/** Never `null`, which commander takes for an option without a value. */
function limit(text: string): Limit {
  return text === NO_LIMIT ? NO_LIMIT : wholeNumber(text);
}

function chosen(given: Limit | undefined, now: number | null): number | null {
  if (given === undefined) return now;
  return given === NO_LIMIT ? null : given;
}

/** Commands for the limits of a workspace, and the purse that it spends from. */
export function defineLimits(command: Command, invocation: Invocation): void {
  const print = (limits: CreditLimits) => {
    const { printer } = invocation;
    const text = (value: number | null) => (value === null ? 'no limit' : String(value));
    printer.result(limits, () =>
      printer.details([
        ['living at a time', text(limits.max_living)],
        ['creates a minute', text(limits.creates_per_minute)],
      ]),
    );
  };
  command
    .command('limits')
    .description('Show or set how many sandboxes the workspace may have and make')
    .option('--max-living <number>', 'living at a time; none for no limit', limit)
    .option('--per-minute <number>', 'creates within a minute; none for no limit', limit)
    .action(async ({ maxLiving, perMinute }: LimitFlags) => {
      const { credits } = await invocation.client();
      const now = await credits.limits();
      if (maxLiving === undefined && perMinute === undefined) return print(now);
      const max_living = chosen(maxLiving, now.max_living);
      const creates_per_minute = chosen(perMinute, now.creates_per_minute);
      print(await credits.setLimits({ max_living, creates_per_minute }));
    });
  const purse = command
    .command('purse')
    .description('Have the workspaces of an org spend from one purse, or each from its own')
    .argument('<org>', 'the organisation');
  chosenArgument(purse, '<mode>', 'shared or split', ['shared', 'split']).action(
    async (org: string, mode: 'shared' | 'split') => {
      const { credits } = await invocation.client();
      const answer = await credits.setOrgCredits(org, { mode });
      invocation.printer.result(answer, () => invocation.printer.line(answer.mode));
    },
  );
}
