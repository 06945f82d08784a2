import type { Command } from 'commander';
import type { CommandEntry, CommandTable } from './command-entry.ts';
import { addGlobalOptions } from './global-options.ts';
import { Invocation } from './invocation.ts';

/** Returns a command as it is defined, with its subcommands; for code that describes commands rather than runs them. */
export async function definedCommand(entry: CommandEntry, table: CommandTable): Promise<Command> {
  const [{ Command }, { define }] = await Promise.all([import('commander'), entry.load()]);
  const program = new Command('sandboxer').enablePositionalOptions();
  const command = program.command(entry.name).description(entry.summary);
  define(command, new Invocation({}), table);
  addGlobalOptions(program);
  return command;
}
