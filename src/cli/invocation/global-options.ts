import type { Command } from 'commander';

/** Options of every command. */
export interface GlobalOptions {
  readonly json: boolean;
  readonly url: string | undefined;
  readonly key: string | undefined;
  readonly workspace: string | undefined;
  readonly quiet: boolean;
  readonly color: boolean;
}

export const DEFAULT_OPTIONS: GlobalOptions = {
  json: false,
  url: undefined,
  key: undefined,
  workspace: undefined,
  quiet: false,
  color: true,
};

const WITH_VALUE = new Set(['--url', '--key', '--workspace']);
const WITHOUT_VALUE = new Set(['--json', '-q', '--quiet', '--no-color', '-h', '--help']);
export const GLOBAL_GROUP = 'Global options:';

/** Adds them to the program and each command below, so that they may stand before and after the command's name. */
export function addGlobalOptions(command: Command): void {
  for (const below of command.commands) addGlobalOptions(below);
  const option = (flags: string, description: string) =>
    command.addOption(command.createOption(flags, description).helpGroup(GLOBAL_GROUP));
  option('--json', 'answer as JSON');
  option('--url <address>', 'the server');
  option('--key <secret>', 'API key');
  option('--workspace <id>', 'another workspace than the key’s own');
  option('-q, --quiet', 'only what was asked for');
  option('--no-color', 'no colours');
  command.addHelpOption(command.createOption('-h, --help', 'this help').helpGroup(GLOBAL_GROUP));
}

/** Returns the options of the line; the ones closer to the command win. */
export function globalOptionsOf(command: Command, env: NodeJS.ProcessEnv): GlobalOptions {
  const given: Record<string, unknown> = {};
  for (let at: Command | null = command; at !== null; at = at.parent) {
    for (const name of Object.keys(DEFAULT_OPTIONS)) {
      const source = at.getOptionValueSource(name);
      if (source !== undefined && source !== 'default' && !(name in given))
        given[name] = at.getOptionValue(name);
    }
  }
  return {
    ...DEFAULT_OPTIONS,
    url: env.SANDBOXER_URL || undefined,
    key: env.SANDBOXER_KEY || undefined,
    workspace: env.SANDBOXER_WORKSPACE || undefined,
    ...given,
  };
}

/** Removes the global options from those of a command's action: none of them reaches a request. */
export function dropGlobalOptions(command: Command): void {
  const own = command.opts<Record<string, unknown>>();
  for (const name of Object.keys(DEFAULT_OPTIONS)) delete own[name];
}

/** Returns the words that are no global options, in order: the command's name comes first. */
export function plainWordsIn(argv: readonly string[]): string[] {
  const words: string[] = [];
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] as string;
    if (!word.startsWith('-')) words.push(word);
    else if (WITH_VALUE.has(word)) at += 1;
  }
  return words;
}

/** Returns whether a word stands behind an option that only the command knows. */
export function mayBeValue(argv: readonly string[], word: string): boolean {
  const before = argv[argv.indexOf(word) - 1];
  return before?.startsWith('-') === true && !before.includes('=') && !WITHOUT_VALUE.has(before);
}

/** Reads the global options without parsing, for errors of the parsing itself. Words behind `--` are the program's. */
export function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return argv.slice(0, end === -1 ? argv.length : end).includes('--json');
}
