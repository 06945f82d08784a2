import type { Command } from 'commander';
import { duration } from './numbers.ts';
import type { Pairs } from './pairs.ts';
import { pairs } from './pairs.ts';

export interface DeriveFlags {
  readonly id?: string;
  readonly ttl?: string | number;
  readonly label?: Pairs;
  readonly wait: boolean;
}

/** Options shared by `fork` and `restore`, which make a new sandbox from an existing one. */
export function addDeriveOptions(command: Command): Command {
  return command
    .option('--id <id>', 'an id of your own')
    .option('--ttl <duration>', 'how long it lives, such as 2h', duration)
    .option('-l, --label <key=value>', 'label', pairs('label'))
    .option('--no-wait', 'answer at once, before it is ready');
}

export function deriveRequestOf(flags: DeriveFlags) {
  return {
    ...(flags.id === undefined ? {} : { id: flags.id }),
    ...(flags.ttl === undefined ? {} : { ttl: flags.ttl }),
    ...(flags.label === undefined ? {} : { labels: { ...flags.label } }),
  };
}
