import type { ErrorCode } from '../../../contract/errors/errors.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import { PayloadReader } from './payload.ts';

const ENOENT = 2;
const MAX_MESSAGE = 1024;

const KINDS: Readonly<Record<number, { readonly code: ErrorCode; readonly field?: string }>> = {
  1: { code: 'SBX_PATH_NOT_FOUND' },
  2: { code: 'SBX_PATH_REFUSED' },
  3: { code: 'SBX_PROCESS_NOT_FOUND' },
  4: { code: 'SBX_INVALID_REQUEST' },
  5: { code: 'SBX_UNSUPPORTED' },
  6: { code: 'SBX_EXTENSION_FAILED' },
  7: { code: 'SBX_EXTENSION_FAILED' },
  8: { code: 'SBX_NOT_FOUND' },
  9: { code: 'SBX_INVALID_REQUEST', field: 'user' },
  10: { code: 'SBX_PATH_REFUSED', field: 'cwd' },
};

/** Returns one line of printable text: it was written inside the sandbox. */
function shown(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\uFFFD').slice(0, 300);
}

/** Maps the agent's refusal, with `subject` (a path, a program) for the reader. */
export function agentError(payload: Buffer, subject: string, backend: string | undefined): SandboxerError {
  const reader = new PayloadReader(payload);
  const kind = KINDS[reader.u16()];
  const errno = reader.u32();
  const message = shown(reader.string(MAX_MESSAGE));
  reader.end();
  const known = kind ?? { code: 'SBX_EXTENSION_FAILED' as const };
  const code = known.field === 'cwd' && errno === ENOENT ? 'SBX_PATH_NOT_FOUND' : known.code;
  // An error of the user or the directory is not about the program.
  const detail = subject === '' || known.field !== undefined ? message : `${shown(subject)}: ${message}`;
  return new SandboxerError(code, detail, {
    ...(known.field === undefined ? {} : { field: known.field }),
    ...(backend === undefined ? {} : { backend }),
  });
}
