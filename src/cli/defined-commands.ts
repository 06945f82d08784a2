import type { Command } from 'commander';
import type { CommandEntry } from './command-table.ts';
import { COMMANDS } from './command-table.ts';
import { addGlobalOptions } from './global-options.ts';
import { Invocation } from './invocation.ts';

export interface LeafCommand {
  readonly entry: CommandEntry;
  /** As it is typed: `keys create`. */
  readonly name: string;
  readonly command: Command;
}

/** A command as it is defined, with its subcommands; for what describes commands rather than runs them. */
export async function definedCommand(entry: CommandEntry, env: NodeJS.ProcessEnv = {}): Promise<Command> {
  const [{ Command }, { define }] = await Promise.all([import('commander'), entry.load()]);
  const program = new Command('sandboxer').enablePositionalOptions();
  const command = program.command(entry.name).description(entry.summary);
  define(command, new Invocation(env));
  addGlobalOptions(program);
  return command;
}

/** Everything that can be run: commands without subcommands, and the subcommands of the others. */
export async function leafCommands(): Promise<LeafCommand[]> {
  const leaves = await Promise.all(
    COMMANDS.map(async (entry) => {
      const command = await definedCommand(entry);
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
