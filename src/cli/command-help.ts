import type { Command, Help, HelpConfiguration } from 'commander';
import { GLOBAL_GROUP } from './global-options.ts';

/** What a command is about comes first, what every command has comes last. */
export function commandHelp(HelpClass: typeof Help): HelpConfiguration {
  return {
    visibleCommands: (command) => [...command.commands],
    subcommandTerm: (command: Command) =>
      [command.name(), ...command.registeredArguments.map((argument) => termOf(argument))].join(' '),
    formatHelp(command, helper) {
      const sections = HelpClass.prototype.formatHelp.call(helper, command, helper).trimEnd().split('\n\n');
      const isGlobal = (section: string) => section.startsWith(GLOBAL_GROUP);
      const ordered = [...sections.filter((one) => !isGlobal(one)), ...sections.filter(isGlobal)];
      return `${ordered.join('\n\n')}\n`;
    },
  };
}

function termOf(argument: Command['registeredArguments'][number]): string {
  const text = argument.name() + (argument.variadic ? '...' : '');
  return argument.required ? `<${text}>` : `[${text}]`;
}
