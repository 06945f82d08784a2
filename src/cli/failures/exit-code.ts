import { SandboxerApiError } from '../../client/transport/api-error.ts';
import { CommandFailure } from './command-failure.ts';
import { UsageError } from './usage-error.ts';

/** Exit codes of SPEC §13. */
export const EXIT = { ok: 0, failed: 1, usage: 2, notFound: 3, refused: 4, backend: 5, ours: 125 } as const;

function ofStatus(status: number, code: string): number {
  if (status === 404 || status === 410) return EXIT.notFound;
  if (status === 400) return EXIT.usage;
  if (status === 502 || code === 'SBX_BACKEND_QUOTA') return EXIT.backend;
  return status < 500 ? EXIT.refused : EXIT.failed;
}

/** Returns the exit code. `runsProgram`: the exit code belongs to a program, so that a failure of ours is always 125. */
export function exitCodeOf(error: unknown, runsProgram: boolean): number {
  if (runsProgram) return EXIT.ours;
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof SandboxerApiError) return ofStatus(error.status, error.code);
  return error instanceof CommandFailure ? error.exitCode : EXIT.failed;
}
