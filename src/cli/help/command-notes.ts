import type { Command } from 'commander';

const NOTES = new WeakMap<Command, readonly string[]>();

/** Sentences that the help of a command ends with. */
export function addNotes(command: Command, ...notes: readonly string[]): Command {
  NOTES.set(command, notes);
  return command;
}

export function notesOf(command: Command): readonly string[] {
  return NOTES.get(command) ?? [];
}
