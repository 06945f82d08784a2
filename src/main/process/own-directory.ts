import { SandboxerError } from '../../contract/errors/errors.ts';
import { makeOwnDirectory } from '../../trees/make-directory.ts';

/**
 * Makes the directory at `path` with mode 0700; one that exists keeps its mode. Throws SBX_CONFIG_INVALID, naming
 * `setting`, if it cannot be made or written to.
 */
export function ownDirectory(setting: string, path: string): void {
  try {
    makeOwnDirectory(path);
  } catch (error) {
    throw new SandboxerError(
      'SBX_CONFIG_INVALID',
      `The directory ${path} cannot be made or written to: ${(error as NodeJS.ErrnoException).code}.`,
      { field: setting, remedy: `Set ${setting} to a place that this user can write to.` },
    );
  }
}
