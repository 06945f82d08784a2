import { SandboxerConnectionError } from '../../client/transport/connection-error.ts';
import { CommandFailure } from '../failures/command-failure.ts';
import { EXIT } from '../failures/exit-code.ts';

/** Awaits `work`; a lost connection becomes a failure with a remedy. */
export async function orBrokenOff<T>(work: Promise<T>, sandboxId: string, left: string): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof SandboxerConnectionError) || error.failure !== 'lost') throw error;
    throw new CommandFailure(error.message, {
      code: 'SBX_CLI_BROKEN_OFF',
      remedy: `${left} See whether the sandbox still answers, then copy again: sandboxer get ${sandboxId}`,
      exitCode: EXIT.backend,
      cause: error,
    });
  }
}
