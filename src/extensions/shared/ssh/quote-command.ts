import { SandboxerError } from '../../../contract/errors/errors.ts';

const PLAIN = /^[A-Za-z0-9_/.:,@%+-]+$/;

/** Quotes a text as one word of a POSIX shell. */
export function quoteWord(text: string): string {
  if (text.includes('\0'))
    throw new SandboxerError('SBX_INVALID_REQUEST', 'An argument contains a null character.', {
      creation: 'not_created',
    });
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Formats a command of a POSIX shell that runs exactly this argument vector. */
export function quoteCommand(argv: readonly string[]): string {
  if (argv.length === 0 || argv[0] === '')
    throw new SandboxerError('SBX_INVALID_REQUEST', 'The program has no name.', { creation: 'not_created' });
  return argv.map(quoteWord).join(' ');
}

/** Printed by the remote shell when 255 is the command's own code and not ssh's. */
export const OWN_255 = '\nsandboxer: exit 255\n';

/**
 * Returns the command text for sshd. sshd hands the text to the user's login shell, whichever that is: so that shell only starts
 * a POSIX one. The latter stays, and a program that is killed ends with 128 + signal instead of no code.
 */
export function remoteCommand(argv: readonly string[]): string {
  const told = `case $s in 255) printf ${quoteWord(OWN_255)} >&2;; esac`;
  return `exec /bin/sh -c ${quoteWord(`${quoteCommand(argv)}; s=$?; ${told}; exit $s`)}`;
}
