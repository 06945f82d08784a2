import type { Command } from 'commander';
import type { ExecInput } from '../../contract/sandboxes/exec.ts';
import { duration } from '../args/numbers.ts';
import type { Pairs } from '../args/pairs.ts';
import { variables } from '../args/pairs.ts';
import { UsageError } from '../failures/usage-error.ts';

export interface ExecFlags {
  readonly env?: Pairs;
  readonly cwd?: string;
  readonly user?: string;
  readonly timeout?: string | number;
  readonly service?: string;
}

/** Options shared by `run`, `exec` and `shell`. */
export function addExecOptions(command: Command): Command {
  return command
    .option('-e, --env <key[=value]>', 'variable; without a value, the one it has here', variables)
    .option('-w, --cwd <path>', 'working directory inside')
    .option('-u, --user <name>', 'user inside')
    .option('--service <name>', 'in this service, where a sandbox is made of services')
    .option('--timeout <duration>', 'kill the program after this time', duration);
}

export function execRequestOf(command: ExecInput['command'], flags: ExecFlags): ExecInput {
  return {
    command,
    ...(flags.env === undefined ? {} : { env: { ...flags.env } }),
    ...(flags.cwd === undefined ? {} : { cwd: flags.cwd }),
    ...(flags.user === undefined ? {} : { user: flags.user }),
    ...(flags.service === undefined ? {} : { service: flags.service }),
    ...(flags.timeout === undefined ? {} : { timeout: flags.timeout }),
  };
}

/** Options that stand behind the id: `exec id --service db -- ls`. A program's name never begins with a dash. */
export function withLateOptions(command: Command, words: readonly string[]): readonly string[] {
  if (words[0] === undefined || words[0] === '--' || !words[0].startsWith('-')) return words;
  const { operands, unknown } = command.parseOptions([...words]);
  const [stranger] = unknown;
  if (stranger?.startsWith('-') && operands.length === 0)
    throw new UsageError(
      `Unknown option '${stranger}'.`,
      `Write the program behind --, as in sandboxer ${command.name()} <id> -- <program>.`,
    );
  return [...operands, ...unknown];
}

/** Removes the separator of `exec id -- ls`: it is not part of the program. */
export function argvOf(words: readonly string[]): string[] {
  return words[0] === '--' ? words.slice(1) : [...words];
}
