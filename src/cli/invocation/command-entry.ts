import type { Command } from 'commander';
import type { Invocation } from './invocation.ts';

/** Declaration of a command: its arguments and options, and its action. It is loaded only when it is called. */
interface CommandModule {
  define(command: Command, invocation: Invocation, table: CommandTable): void;
}

export interface CommandEntry {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  readonly group:
    | 'Sandboxes'
    | 'Inside a sandbox'
    | 'Snapshots'
    | 'Images and volumes'
    | 'Catalogue and routing'
    | 'Account'
    | 'Server'
    | null;
  /** Candidates for completion. */
  readonly subcommands?: readonly string[];
  /** Whether its exit code is that of the program it runs. */
  readonly runsProgram?: true;
  load(): Promise<CommandModule>;
}

/** All commands, for a command that describes the others; it must not import the table, which imports every command. */
export interface CommandTable {
  readonly entries: readonly CommandEntry[];
  /** Finds a command by its name or another name of it. */
  find(name: string): CommandEntry | undefined;
}
