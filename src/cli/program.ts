import type { CommandEntry } from './command-table.ts';
import { COMMANDS, findCommand } from './command-table.ts';
import { EXIT, exitCodeOf } from './exit-code.ts';
import {
  addGlobalOptions,
  commandNameIn,
  DEFAULT_OPTIONS,
  globalOptionsOf,
  wantsJson,
} from './global-options.ts';
import { helpText } from './help-text.ts';
import { Invocation } from './invocation.ts';
import { nearestName } from './nearest-name.ts';
import { printError } from './output/print-error.ts';
import { Printer } from './output/printer.ts';
import { packageVersion } from './package-version.ts';
import { UsageError } from './usage-error.ts';

function unknownCommand(name: string): UsageError {
  const near = nearestName(
    name,
    COMMANDS.flatMap((entry) => [entry.name, ...(entry.aliases ?? [])]),
  );
  const hint = near === null ? 'See sandboxer --help.' : `Did you mean "${near}"?`;
  return new UsageError(`There is no command "${name}".`, hint);
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
  const name = commandNameIn(argv);
  const entry = name === undefined ? undefined : findCommand(name);
  try {
    if (name === undefined) throw new UsageError('There is no command on the line.', 'See sandboxer --help.');
    if (entry === undefined) throw unknownCommand(name);
    await runCommand(entry, argv, invocation);
    return invocation.exitCode;
  } catch (error) {
    const configured = invocation.options !== DEFAULT_OPTIONS;
    const options = { ...DEFAULT_OPTIONS, json: wantsJson(argv), color: !argv.includes('--no-color') };
    printError(error, configured ? invocation.printer : new Printer(options));
    return exitCodeOf(error, entry?.runsProgram === true);
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

function answerAtOnce(argv: readonly string[]): string | null {
  if (argv.length === 0) return helpText();
  const [first] = argv;
  if (argv.length > 1) return null;
  if (first === '--help' || first === '-h' || first === 'help') return helpText();
  return first === '--version' || first === '-V' ? `${packageVersion()}\n` : null;
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
  const answer = answerAtOnce(argv);
  if (answer !== null) {
    process.stdout.write(answer);
    return;
  }
  const code = await dispatch(withoutHelpWord(argv), invocation);
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  process.exit(code);
}
