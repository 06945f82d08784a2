import { makeOwnDirectory } from '../../client/trees/make-directory.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';

/** Makes a directory that a setting names, readable by its owner alone. */
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
