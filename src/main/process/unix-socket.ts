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

/** Makes room for a socket that only this user can reach: clears what a dead server left, refuses a living one. */
export async function prepareSocketPath(path: string): Promise<void> {
  ownDirectory('SANDBOXER_SOCKET', dirname(path));
  if (await answers(path)) {
    throw new SandboxerError('SBX_STORE_BUSY', `Another server answers at ${path}.`, {
      remedy: 'Stop it, or set SANDBOXER_STATE_DIR to a directory of its own.',
    });
  }
  rmSync(path, { force: true });
}

export function restrictSocket(path: string): void {
  chmodSync(path, 0o600);
}
