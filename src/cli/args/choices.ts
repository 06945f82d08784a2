import type { Command } from 'commander';
import { nearestName } from '../failures/nearest-name.ts';
import { UsageError } from '../failures/usage-error.ts';

/** Returns the value, or throws an error with the similar one that was probably meant. */
function chosen<T extends string>(text: string, values: readonly T[]): T {
  const found = values.find((value) => value === text);
  if (found !== undefined) return found;
  const near = nearestName(text, values);
  throw new UsageError(
    `"${text}" is not one of ${values.join(', ')}.`,
    near === null ? undefined : `Did you mean "${near}"?`,
  );
}

interface Choice<T extends string> {
  readonly description: string;
  readonly values: readonly T[];
  readonly byDefault?: T | undefined;
}

/** Option with one of these values. Completion offers them, and another value is refused before the command does anything. */
export function choice<T extends string>(
  command: Command,
  flags: string,
  { description, values, byDefault }: Choice<T>,
): Command {
  const option = command
    .createOption(flags, description)
    .choices(values)
    .argParser((text) => chosen(text, values));
  return command.addOption(byDefault === undefined ? option : option.default(byDefault));
}

/** Option with one of these values that may be repeated. */
export function choices<T extends string>(
  command: Command,
  flags: string,
  description: string,
  values: readonly T[],
): Command {
  const option = command
    .createOption(flags, description)
    .choices(values)
    .argParser((text, before: readonly T[] = []) => [...before, chosen(text, values)]);
  return command.addOption(option);
}

/** Argument with one of these values. */
export function chosenArgument<T extends string>(
  command: Command,
  flags: string,
  description: string,
  values: readonly T[],
): Command {
  return command.addArgument(
    command
      .createArgument(flags, description)
      .choices(values)
      .argParser((text) => chosen(text, values)),
  );
}
