import type { Command } from 'commander';

const NOTES = new WeakMap<Command, readonly string[]>();

/** Notes that end the help of a command. */
export function addNotes(command: Command, ...notes: readonly string[]): Command {
  NOTES.set(command, notes);
  return command;
}

export function notesOf(command: Command): readonly string[] {
  return NOTES.get(command) ?? [];
}
