import { helpText } from './help-text.ts';
import { packageVersion } from './package-version.ts';

/** What needs neither a parser nor a server: the help as a whole and the version. */
export function instantAnswer(argv: readonly string[]): string | null {
  if (argv.length > 1) return null;
  const [word] = argv;
  if (word === undefined || word === '--help' || word === '-h' || word === 'help') return helpText();
  return word === '--version' || word === '-V' ? `${packageVersion()}\n` : null;
}
