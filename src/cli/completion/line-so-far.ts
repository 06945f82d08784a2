import type { Command, Option } from 'commander';
import type { CommandEntry, CommandTable } from '../invocation/command-entry.ts';
import { definedCommand } from '../invocation/defined-command.ts';

/** Meaning of the words before the last one. */
export interface LineSoFar {
  readonly entry: CommandEntry | null;
  /** Command or, once it was chosen, the subcommand. */
  readonly command: Command | null;
  readonly positionals: readonly string[];
  /** Option whose value comes next. */
  readonly pending: Option | null;
  /** Values of options, by their long name. */
  readonly given: ReadonlyMap<string, string>;
  /** Whether the rest belongs to a program. */
  readonly over: boolean;
}

const GLOBAL_WITH_VALUE = /^--(?:url|key|workspace)$/;

function optionOf(command: Command | null, word: string): Option | null {
  return command?.options.find(({ short, long }) => short === word || long === word) ?? null;
}

/** Words behind the arguments of the command belong to the program: `exec <id> <program...>`. */
function isProgram(command: Command, positionals: readonly string[]): boolean {
  const { registeredArguments: all } = command;
  const last = all.at(-1);
  if (!last?.variadic || !['program', 'args'].includes(last.name())) return false;
  return positionals.length >= all.length;
}

class Reader {
  entry: CommandEntry | null = null;
  command: Command | null = null;
  positionals: string[] = [];
  pending: Option | null = null;
  given = new Map<string, string>();
  over = false;
  /** Global option before the command, whose value comes next. */
  #before: string | null = null;
  readonly #table: CommandTable;

  constructor(table: CommandTable) {
    this.#table = table;
  }

  async read(word: string): Promise<void> {
    if (this.over) return;
    // bash splits `--profile=x`.
    if (word === '=' && this.pending) return;
    if (this.#before !== null) {
      this.given.set(this.#before, word);
      this.#before = null;
    } else if (this.pending) {
      this.given.set(this.pending.long ?? '', word);
      this.pending = null;
    } else if (word === '--') this.over = true;
    else if (word.startsWith('-')) this.#option(word);
    else await this.#plain(word);
  }

  #option(word: string): void {
    const [name = '', value] = word.split('=', 2);
    if (value !== undefined) this.given.set(name, value);
    else if (this.command === null && GLOBAL_WITH_VALUE.test(word)) this.#before = word;
    else {
      const option = optionOf(this.command, word);
      if (option?.required) this.pending = option;
    }
  }

  async #plain(word: string): Promise<void> {
    if (this.entry === null) {
      this.entry = this.#table.find(word) ?? null;
      this.command = this.entry && (await definedCommand(this.entry, this.#table));
      this.over = this.entry === null;
      return;
    }
    const below = this.command?.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (below) this.command = below;
    else this.positionals.push(word);
    if (this.command && isProgram(this.command, this.positionals)) this.over = true;
  }

  /** Whether the next word is the value of a global option before the command. */
  get waits(): boolean {
    return this.#before !== null;
  }
}

export async function lineSoFar(words: readonly string[], table: CommandTable): Promise<LineSoFar> {
  const reader = new Reader(table);
  for (const word of words) await reader.read(word);
  const { entry, command, positionals, pending, given, over, waits } = reader;
  return { entry, command, positionals, pending, given, over: over || waits };
}
