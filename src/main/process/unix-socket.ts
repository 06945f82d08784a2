import { chmodSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { dirname } from 'node:path';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { ownDirectory } from './own-directory.ts';

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/**
 * Prepares the path of the server's socket: makes its directory, removes the socket of a dead server, and throws
 * SBX_STORE_BUSY if a living one answers. The mode of the socket itself is set by `restrictSocket`, after it listens.
 */
export async function prepareSocketPath(path: string): Promise<void> {
  ownDirectory('SANDBOXER_SOCKET', dirname(path));
  if (await answers(path)) {
    throw new SandboxerError('SBX_STORE_BUSY', `Another server answers at ${path}.`, {
      remedy: 'Stop it, or set SANDBOXER_STATE_DIR to a directory of its own.',
    });
  }
  rmSync(path, { force: true });
}

/** Lets only this user connect; the directory of the socket may be open to others. */
export function restrictSocket(path: string): void {
  chmodSync(path, 0o600);
}
