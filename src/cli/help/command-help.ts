import type { Command, Help, HelpConfiguration } from 'commander';
import { GLOBAL_GROUP } from '../invocation/global-options.ts';
import { wrapped } from '../output/wrapped-text.ts';
import { exampleLines } from './command-examples.ts';
import { notesOf } from './command-notes.ts';

/** Options of the command come first, those of every command last. */
export function commandHelp(HelpClass: typeof Help): HelpConfiguration {
  return {
    // Choices are in the description.
    optionDescription: (option) => describedWith(option.description, option.defaultValue, option.negate),
    argumentDescription: (argument) => describedWith(argument.description, argument.defaultValue, false),
    visibleCommands: (command) => [...command.commands],
    subcommandTerm: (command: Command) =>
      [command.name(), ...command.registeredArguments.map((argument) => termOf(argument))].join(' '),
    formatHelp(command, helper) {
      const sections = HelpClass.prototype.formatHelp.call(helper, command, helper).trimEnd().split('\n\n');
      const isGlobal = (section: string) => section.startsWith(GLOBAL_GROUP);
      const notes = notesOf(command).flatMap((note) => wrapped(note, helper.helpWidth ?? 80));
      const ordered = [
        ...sections.filter((one) => !isGlobal(one)),
        notes.join('\n'),
        examplesOf(command),
        ...sections.filter(isGlobal),
      ];
      return `${ordered.filter(Boolean).join('\n\n')}\n`;
    },
  };
}

function examplesOf(command: Command): string {
  const path: string[] = [];
  for (let at: Command | null = command; at?.parent; at = at.parent) path.unshift(at.name());
  const parent = command.parent as (Command & { readonly _defaultCommandName?: string | null }) | null;
  const lines =
    command.commands.length > 0
      ? command.commands.flatMap((below) => exampleLines([...path, below.name()].join(' '), false))
      : exampleLines(path.join(' '), parent?._defaultCommandName === command.name());
  return lines.length === 0 ? '' : ['Examples:', ...lines.map((line) => `  ${line}`)].join('\n');
}

function describedWith(description: string, byDefault: unknown, negates: boolean): string {
  if (byDefault === undefined || typeof byDefault === 'boolean' || negates) return description;
  const text = typeof byDefault === 'string' ? byDefault : JSON.stringify(byDefault);
  return `${description} (default: ${text})`;
}

function termOf(argument: Command['registeredArguments'][number]): string {
  const text = argument.name() + (argument.variadic ? '...' : '');
  return argument.required ? `<${text}>` : `[${text}]`;
}
