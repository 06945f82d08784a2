import type { Command } from 'commander';
import { list } from './pairs.ts';

/** What of this machine a new sandbox gets. */
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
