import { helpText } from './help-text.ts';
import { packageVersion } from './process/package-version.ts';

/** Returns the version, or the help as a whole. */
export function instantAnswer(word: string | undefined): string {
  return word === '-V' || word === '--version' ? `${packageVersion()}\n` : helpText();
}
