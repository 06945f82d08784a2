import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import { CommandFailure } from '../failures/command-failure.ts';
import { EXIT } from '../failures/exit-code.ts';

/** Returns an id as it is; a name means the newest snapshot of that name, as for images. */
export async function snapshotIdOf(client: SandboxerClient, text: string): Promise<string> {
  if (text.startsWith('snap_')) return text;
  for await (const { snapshot_id, name, state } of client.snapshots.list()) {
    if (name === text && state === 'available') return snapshot_id;
  }
  throw new CommandFailure(`There is no snapshot named "${text}".`, {
    code: 'SBX_NOT_FOUND',
    exitCode: EXIT.notFound,
    remedy: 'See which there are: sandboxer snapshots.',
  });
}
