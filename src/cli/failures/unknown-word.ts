import { nearestName } from './nearest-name.ts';
import { UsageError } from './usage-error.ts';

/** Returns a usage error for a mistyped word, with the similar one. */
export function unknownWord(what: string, word: string, names: readonly string[]): UsageError {
  const near = nearestName(word, names);
  const few = names.length <= 8 ? `Choose one of: ${names.join(', ')}.` : 'See sandboxer --help.';
  return new UsageError(`There is no ${what} "${word}".`, near === null ? few : `Did you mean "${near}"?`);
}
