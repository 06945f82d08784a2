import type { Command } from 'commander';
import { COMMAND_TABLE, COMMANDS, otherNamesOf } from '../../src/cli/command-table.ts';
import { EXIT } from '../../src/cli/failures/exit-code.ts';
import { COMMAND_EXAMPLES } from '../../src/cli/help/command-examples.ts';
import { notesOf } from '../../src/cli/help/command-notes.ts';
import type { CommandEntry } from '../../src/cli/invocation/command-entry.ts';
import { definedCommand } from '../../src/cli/invocation/defined-command.ts';
import { GLOBAL_GROUP } from '../../src/cli/invocation/global-options.ts';
import type { Generator } from './generator.ts';
import { page, table } from './generator.ts';

interface Defined {
  readonly entry: CommandEntry;
  readonly command: Command;
}

async function defined(entry: CommandEntry): Promise<Defined> {
  return { entry, command: await definedCommand(entry, COMMAND_TABLE) };
}

const all = await Promise.all(COMMANDS.filter(({ group }) => group !== null).map(defined));

/** Options of every command are listed once. */
function ownOptions(command: Command): Command['options'] {
  return command.options.filter(({ helpGroupHeading }) => helpGroupHeading !== GLOBAL_GROUP);
}

function defaultText(value: unknown, negate: boolean): string {
  if (value === undefined || negate) return '';
  return `; default \`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}

/** Escapes prose for a table cell: `<id>` would be taken for markup. */
function prose(text: string): string {
  return text.replaceAll('<', '&lt;');
}

function phrase(text: string): string {
  return prose(text.replace(/\s{2,}\[(\w+)\]$/, ' (`$1`)').trim());
}

function sentence(text: string): string {
  return prose(text.trim().replace(/([^.!?])$/, '$1.'));
}

function usage(command: Command, name: string): string {
  const words = command.registeredArguments.map((argument) => {
    const dots = argument.variadic ? '...' : '';
    return argument.required ? `<${argument.name()}${dots}>` : `[${argument.name()}${dots}]`;
  });
  const options = ownOptions(command).length > 0 ? ['[options]'] : [];
  return ['sandboxer', name, ...options, ...words].join(' ');
}

function leaf(command: Command, name: string): string[] {
  const parameters = [
    ...command.registeredArguments
      .filter(({ description }) => description)
      .map((argument) => [
        `\`${argument.name()}\``,
        phrase(argument.description) + defaultText(argument.defaultValue, false),
      ]),
    ...ownOptions(command).map((option) => [
      `\`${option.flags}\``,
      phrase(option.description) + defaultText(option.defaultValue, option.negate),
    ]),
  ];
  return [
    `\`\`\`text\n${usage(command, name)}\n\`\`\``,
    ...(parameters.length > 0 ? [table(['Argument or option', 'Meaning'], parameters)] : []),
    ...(notesOf(command).length > 0 ? [prose(notesOf(command).join(' '))] : []),
  ];
}

function example(name: string): string[] {
  const found = COMMAND_EXAMPLES[name] ?? [];
  // A sentence stands between them: text right below a command would look like its output.
  return found.flatMap(({ runs, text }, at) => [
    ...(at === 0 ? [] : ['Also:']),
    `\`\`\`${runs ? 'sh' : 'text'}\n${text}\n\`\`\``,
  ]);
}

function section({ entry, command }: Defined): string[] {
  const aliases = otherNamesOf(entry)
    .map((name) => `\`${name}\``)
    .join(', ');
  const also = aliases === '' ? '' : ` Also: ${aliases}.`;
  const heading = [`### ${entry.name}`, `${sentence(entry.summary)}${also}`];
  if (command.commands.length === 0)
    return [...heading, ...leaf(command, entry.name), ...example(entry.name)];
  const byDefault = (command as unknown as { _defaultCommandName?: string })._defaultCommandName;
  return [
    ...heading,
    ...command.commands.flatMap((below) => {
      const usual = below.name() === byDefault ? ` This is what \`sandboxer ${entry.name}\` alone does.` : '';
      return [
        `**${entry.name} ${below.name()}** – ${sentence(below.description())}${usual}`,
        ...leaf(below, `${entry.name} ${below.name()}`),
      ];
    }),
    ...example(entry.name),
  ];
}

function groups(): string[] {
  const names = [...new Set(all.map(({ entry }) => entry.group))];
  return names.flatMap((group) => [
    `## ${group}`,
    ...all.filter(({ entry }) => entry.group === group).flatMap(section),
  ]);
}

export const cliPage: Generator = {
  file: 'docs/reference/cli.md',
  render: () =>
    page(
      'src/cli/commands/',
      '# The command `sandboxer`',
      'Without a server configured, the command starts one for you on this machine, on a unix socket of yours alone. `--url` and `--key`, or `SANDBOXER_URL` and `SANDBOXER_KEY`, lead to another.',
      table(
        ['Command', 'What'],
        all.map(({ entry }) => [`[\`${entry.name}\`](#${entry.name})`, sentence(entry.summary)]),
      ),
      '## Options of every command',
      'Before or after the name of the command.',
      table(
        ['Option', 'Variable', 'Meaning'],
        [
          ['`--json`', '', 'Answer as JSON; streams as one document on each line. Errors too, on stdout.'],
          ['`--url <address>`', '`SANDBOXER_URL`', 'The server: `http://…`, `https://…` or `unix:/path`.'],
          ['`--key <secret>`', '`SANDBOXER_KEY`', 'API key.'],
          ['`--workspace <id>`', '`SANDBOXER_WORKSPACE`', 'Another workspace than the key’s own.'],
          ['`-q, --quiet`', '', 'Only what was asked for: ids, no progress, no notes.'],
          ['`--no-color`', '`NO_COLOR`', 'No colours. There are none where the output is not a terminal.'],
          ['`-h, --help`', '', 'Help, also for each command.'],
        ],
      ),
      '## Exit codes',
      table(
        ['Code', 'Meaning'],
        [
          [String(EXIT.ok), 'Done.'],
          [String(EXIT.failed), 'Failed: the server cannot be reached, or failed itself.'],
          [String(EXIT.usage), 'The command line or the request is not valid.'],
          [String(EXIT.notFound), 'There is no such thing.'],
          [String(EXIT.refused), 'Refused: not allowed, not possible, not paid for.'],
          [String(EXIT.backend), 'The backend failed.'],
        ],
      ),
      '`run`, `exec`, `shell` and `ssh` end with the exit code of the program: 125 when sandboxer itself failed, 126 when the program cannot be run, 127 when there is none.',
      ...groups(),
    ),
};
