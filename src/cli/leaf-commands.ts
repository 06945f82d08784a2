import type { Command } from 'commander';
import { COMMAND_TABLE, COMMANDS } from './command-table.ts';
import type { CommandEntry } from './invocation/command-entry.ts';
import { definedCommand } from './invocation/defined-command.ts';

export interface LeafCommand {
  readonly entry: CommandEntry;
  /** Name as it is typed: `keys create`. */
  readonly name: string;
  readonly command: Command;
}

/** Returns all commands that can be run: those without subcommands, and the subcommands of the others. */
export async function leafCommands(): Promise<LeafCommand[]> {
  const leaves = await Promise.all(
    COMMANDS.map(async (entry) => {
      const command = await definedCommand(entry, COMMAND_TABLE);
      if (command.commands.length === 0) return [{ entry, name: entry.name, command }];
      return command.commands.map((below) => ({
        entry,
        name: `${entry.name} ${below.name()}`,
        command: below,
      }));
    }),
  );
  return leaves.flat();
}
