import type { Argument, Option } from 'commander';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import type { CommandTable } from '../invocation/command-entry.ts';
import type { LineSoFar } from './line-so-far.ts';
import { lineSoFar } from './line-so-far.ts';
import type { Candidate } from './names-on-server.ts';
import { lookUpFor } from './names-on-server.ts';

/** Opens a client of the server named on the line. */
export type Connect = (given: LineSoFar['given']) => SandboxerClient;

/** Source of the candidates. */
interface Sources {
  readonly table: CommandTable;
  readonly connect: Connect;
}

const GLOBAL_FLAGS = ['--json', '--url', '--key', '--workspace', '--quiet', '--no-color', '--help'];
/** Options whose value has another name than its kind. */
const VALUES_OF: Readonly<Record<string, string>> = { '--in-workspace': 'workspace', '--sandbox': 'sandbox' };

function plain(value: string, description = ''): Candidate {
  return { value, description };
}

function optionsOf({ command }: LineSoFar): Candidate[] {
  if (command === null) return GLOBAL_FLAGS.map((flag) => plain(flag));
  return [
    ...command.options.flatMap(({ long, description }) => (long ? [plain(long, description)] : [])),
    plain('--help', 'this help'),
  ];
}

function nextArgument({ command, positionals }: LineSoFar): Argument | undefined {
  const all = command?.registeredArguments ?? [];
  const last = all.at(-1);
  return all[positionals.length] ?? (last?.variadic ? last : undefined);
}

/** Returns the name of the value of an option or an argument, which determines its candidates. */
function nameOf(of: Option | Argument): string {
  if (!('long' in of)) return of.name();
  return VALUES_OF[of.long ?? ''] ?? of.long?.slice(2) ?? '';
}

async function valuesOf(of: Option | Argument, line: LineSoFar, connect: Connect): Promise<Candidate[]> {
  if (of.argChoices) return of.argChoices.map((choice) => plain(choice));
  // `--id` is a new name; so are the names of new objects.
  const isNew = 'long' in of ? of.long === '--id' : /^(?:create|add)$/.test(line.command?.name() ?? '');
  const lookUp = isNew ? undefined : lookUpFor(nameOf(of));
  if (lookUp === undefined) return [];
  const client = connect(line.given);
  try {
    return await lookUp(client, line);
  } catch {
    return [];
  } finally {
    client.close();
  }
}

async function allFor(line: LineSoFar, word: string, { connect, table }: Sources): Promise<Candidate[]> {
  const { entry, command, pending, over } = line;
  if (over) return [];
  if (pending) return valuesOf(pending, line, connect);
  if (word.startsWith('-')) return optionsOf(line);
  if (entry === null || command === null) {
    return table.entries.flatMap(({ name, aliases = [], group, summary }) =>
      group === null ? [] : [name, ...aliases].map((one) => plain(one, summary)),
    );
  }
  if (command.commands.length > 0)
    return command.commands.map((below) => plain(below.name(), below.description()));
  const argument = nextArgument(line);
  return argument ? valuesOf(argument, line, connect) : [];
}

/** Returns the completions of the last of these words. Empty where it may be a path, which the shell completes. */
export async function candidatesFor(words: readonly string[], sources: Sources): Promise<Candidate[]> {
  const typed = words.at(-1) ?? '';
  const line = await lineSoFar(words.slice(0, -1), sources.table);
  const word = typed === '=' && line.pending ? '' : typed;
  return (await allFor(line, word, sources)).filter(({ value }) => value.startsWith(word));
}
