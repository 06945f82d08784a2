import type { Command } from 'commander';
import { list } from './pairs.ts';

/** Options that bring files of this machine into a new sandbox. */
export function addStageOptions(command: Command): Command {
  return command
    .option(
      '--mirror [directory]',
      'start with a copy of this directory; `sandboxer sync` brings changes back',
    )
    .option('--with-git', 'also upload .git')
    .option('--with-secrets', 'also upload .env and other files that may hold secrets')
    .option('--with-secret <pattern>', 'upload those of them that match, as in .gitignore', list);
}
