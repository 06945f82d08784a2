import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { SandboxFiles, SandboxSession } from '../../../core/ports/session.ts';

/** Returns files over the current session. */
export function filesOver(session: () => Promise<SandboxSession>): SandboxFiles {
  const files = async () => must((await session()).files);
  return {
    stat: async (...args) => await (await files()).stat(...args),
    list: async (...args) => await (await files()).list(...args),
    read: async (...args) => await (await files()).read(...args),
    write: async (...args) => await (await files()).write(...args),
    mkdir: async (...args) => await (await files()).mkdir(...args),
    move: async (...args) => await (await files()).move(...args),
    remove: async (...args) => await (await files()).remove(...args),
    upload: async (...args) => await (await files()).upload(...args),
    download: async (...args) => await (await files()).download(...args),
    watch: async (...args) => await must((await files()).watch?.(...args)),
  };
}

/** Returns a member that every channel of these backends has. */
export function must<T>(value: T | undefined): T {
  if (value === undefined) throw new SandboxerError('SBX_UNSUPPORTED', 'The channel does not offer this.');
  return value;
}
