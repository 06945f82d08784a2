import { homedir } from 'node:os';
import { join } from 'node:path';

/** Directory of compiled code: in the user's own folder, since code from a shared one could be anyone's. */
export function compileCacheDir(env: NodeJS.ProcessEnv): string {
  return (
    env.NODE_COMPILE_CACHE || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sandboxer', 'compile')
  );
}
