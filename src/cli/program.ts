import type { CommandEntry } from './command-table.ts';
import { COMMANDS, findCommand } from './command-table.ts';
import { EXIT, exitCodeOf } from './exit-code.ts';
import {
  addGlobalOptions,
  DEFAULT_OPTIONS,
  globalOptionsOf,
  plainWordsIn,
  wantsJson,
} from './global-options.ts';
import { Invocation } from './invocation.ts';
import { nearestName } from './nearest-name.ts';
import { printError } from './output/print-error.ts';
import { Printer } from './output/printer.ts';
import { UsageError } from './usage-error.ts';

function unknownWord(what: string, word: string, names: readonly string[], help: string): UsageError {
  const near = nearestName(word, names);
  return new UsageError(`There is no ${what} "${word}".`, near === null ? help : `Did you mean "${near}"?`);
}

function commandIn(argv: readonly string[]): CommandEntry {
  const [name, next] = plainWordsIn(argv);
  if (name === undefined) throw new UsageError('There is no command on the line.', 'See sandboxer --help.');
  const entry = findCommand(name);
  if (entry === undefined) {
    const names = COMMANDS.flatMap((known) => [known.name, ...(known.aliases ?? [])]);
    throw unknownWord('command', name, names, 'See sandboxer --help.');
  }
  const { subcommands } = entry;
  if (subcommands && next !== undefined && !subcommands.includes(next)) {
    throw unknownWord(`${name} command`, next, subcommands, `Choose one of: ${subcommands.join(', ')}.`);
  }
  return entry;
}

/** Commander's `error: unknown option '--jsn'\n(Did you mean --json?)`, in our form. */
function usageErrorOf(message: string, entry: CommandEntry): UsageError {
  const [first = '', hint] = message.replace(/^error: /, '').split('\n');
  const text = `${first.charAt(0).toUpperCase()}${first.slice(1)}`.replace(/\.?$/, '.');
  return new UsageError(text, hint?.replace(/^\((.*)\)$/, '$1') ?? `See sandboxer ${entry.name} --help.`);
}

async function runCommand(
  entry: CommandEntry,
  argv: readonly string[],
  invocation: Invocation,
): Promise<void> {
  const [{ Command, CommanderError }, { define }] = await Promise.all([import('commander'), entry.load()]);
  const program = new Command('sandboxer');
  program
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: () => {} });
  program.hook('preAction', (_program, action) => {
    invocation.configure(globalOptionsOf(action, invocation.env));
  });
  const command = program
    .command(entry.name)
    .aliases([...(entry.aliases ?? [])])
    .description(entry.summary);
  define(command, invocation);
  addGlobalOptions(program);
  try {
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0 && error.code !== 'commander.help') throw usageErrorOf(error.message, entry);
  }
}

async function dispatch(argv: readonly string[], invocation: Invocation): Promise<number> {
  let runsProgram = false;
  try {
    const entry = commandIn(argv);
    runsProgram = entry.runsProgram === true;
    await runCommand(entry, argv, invocation);
    return invocation.exitCode;
  } catch (error) {
    const configured = invocation.options !== DEFAULT_OPTIONS;
    const options = { ...DEFAULT_OPTIONS, json: wantsJson(argv), color: !argv.includes('--no-color') };
    printError(error, configured ? invocation.printer : new Printer(options));
    return exitCodeOf(error, runsProgram);
  } finally {
    invocation.close();
  }
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed) resolve();
    else stream.write('', () => resolve());
  });
}

/** `help create` is `create --help`. */
function withoutHelpWord(argv: readonly string[]): readonly string[] {
  return argv[0] === 'help' && argv[1] !== undefined ? [...argv.slice(1), '--help'] : argv;
}

export async function runProgram(argv: readonly string[]): Promise<void> {
  const invocation = new Invocation(process.env);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.exit(EXIT.failed);
    invocation.onOutputClosed();
  });
  process.stderr.on('error', () => {});
  const code = await dispatch(withoutHelpWord(argv), invocation);
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  process.exit(code);
}
