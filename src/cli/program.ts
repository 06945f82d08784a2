import { COMMAND_TABLE, COMMANDS, findCommand, otherNamesOf } from './command-table.ts';
import { UsageError } from './failures/usage-error.ts';
import type { CommandEntry } from './invocation/command-entry.ts';
import {
  addGlobalOptions,
  DEFAULT_OPTIONS,
  dropGlobalOptions,
  globalOptionsOf,
  mayBeValue,
  plainWordsIn,
  wantsJson,
} from './invocation/global-options.ts';
import { Invocation } from './invocation/invocation.ts';
import { flushed } from './output/flushed.ts';

async function commandIn(argv: readonly string[]): Promise<CommandEntry> {
  const [name, next] = plainWordsIn(argv);
  if (name === undefined) throw new UsageError('There is no command on the line.', 'See sandboxer --help.');
  const entry = findCommand(name);
  const names = entry
    ? entry.subcommands
    : COMMANDS.flatMap(({ name, aliases, group }) => (group === null ? [] : [name, ...(aliases ?? [])]));
  const word = entry ? next : name;
  // Such a command alone lists, and takes options for that, whose values are not subcommand names.
  if (entry && next !== undefined && mayBeValue(argv, next)) return entry;
  if (entry?.group !== null && names && word !== undefined && !names.includes(word)) {
    const { unknownWord } = await import('./failures/unknown-word.ts');
    throw unknownWord(entry ? `${name} command` : 'command', word, names);
  }
  return entry as CommandEntry;
}

/** Converts the two lines of commander, `error: unknown option '--jsn'` and `(Did you mean --json?)`, to our form. */
function usageErrorOf(message: string): UsageError {
  const [first = '', hint] = message.replace(/^error: /, '').split('\n');
  const text = `${first.charAt(0).toUpperCase()}${first.slice(1)}`.replace(/\.?$/, '.');
  return new UsageError(text, hint?.replace(/^\((.*)\)$/, '$1'));
}

/** Adds a hint at the help to a usage error without a remedy. */
function withRemedy(error: unknown, argv: readonly string[]): unknown {
  if (!(error instanceof UsageError) || error.remedy !== undefined) return error;
  const [name = '', next = ''] = plainWordsIn(argv);
  const path = findCommand(name)?.subcommands?.includes(next) ? `${name} ${next}` : name;
  return new UsageError(error.message, `See sandboxer ${path} --help.`);
}

/** Returns whether the help is shown; also true where the words are a program's, which only costs a little time. */
function showsHelp(argv: readonly string[], { subcommands }: CommandEntry): boolean {
  const [, next] = plainWordsIn(argv);
  return argv.includes('--help') || argv.includes('-h') || (subcommands !== undefined && next === undefined);
}

async function runCommand(
  entry: CommandEntry,
  argv: readonly string[],
  invocation: Invocation,
): Promise<void> {
  const [{ Command, CommanderError, Help }, { define }] = await Promise.all([
    import('commander'),
    entry.load(),
  ]);
  const program = new Command('sandboxer');
  program
    .enablePositionalOptions()
    .exitOverride()
    .configureHelp(showsHelp(argv, entry) ? (await import('./help/command-help.ts')).commandHelp(Help) : {})
    .configureOutput({ outputError: () => {} });
  program.hook('preAction', (_program, action) => {
    invocation.configure(globalOptionsOf(action, invocation.env));
    dropGlobalOptions(action);
  });
  const command = program
    .command(entry.name)
    .aliases([...otherNamesOf(entry)])
    .description(entry.summary);
  define(command, invocation, COMMAND_TABLE);
  addGlobalOptions(program);
  try {
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0 && error.code !== 'commander.help') throw usageErrorOf(error.message);
  }
}

/** Runs one command line; returns its exit code. */
export async function dispatch(argv: readonly string[], invocation: Invocation): Promise<number> {
  let runsProgram = false;
  try {
    const entry = await commandIn(argv);
    runsProgram = entry.runsProgram === true;
    await runCommand(entry, argv, invocation);
    return invocation.exitCode;
  } catch (error) {
    if (invocation.options === DEFAULT_OPTIONS) {
      invocation.configure({
        ...DEFAULT_OPTIONS,
        json: wantsJson(argv),
        color: !argv.includes('--no-color'),
      });
    }
    const { failCommand } = await import('./fail-command.ts');
    return failCommand(withRemedy(error, argv), invocation.printer, runsProgram);
  } finally {
    invocation.close();
  }
}

/** Treats `help create` as `create --help`. */
function withoutHelpWord(argv: readonly string[]): readonly string[] {
  return argv[0] === 'help' && argv[1] !== undefined ? [...argv.slice(1), '--help'] : argv;
}

export async function runProgram(argv: readonly string[]): Promise<void> {
  const invocation = new Invocation(process.env);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => invocation.onOutputLost(error));
  process.stderr.on('error', () => {});
  const code = await dispatch(withoutHelpWord(argv), invocation);
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  process.exit(code);
}
