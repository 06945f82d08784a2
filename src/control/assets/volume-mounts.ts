import type { SandboxState } from '../../contract/values/state.ts';
import type { Tx } from '../../core/ports/store/store.ts';

const PAGE = 200;
/** The states in which a backend may still have a volume mounted: all until nothing of the sandbox is left. */
const HOLDING: readonly SandboxState[] = [
  'requested',
  'provisioning',
  'ready',
  'active',
  'paused',
  'expired',
  'failed',
  'destroying',
];

async function nothingLeft(tx: Tx, uid: string): Promise<boolean> {
  return (await tx.attempts.forSandbox(uid)).every((attempt) => attempt.state === 'gone');
}

/**
 * Returns the sandboxes of a workspace that have each volume, by the volume's id. Read from their recipes: no counter is kept.
 */
export async function mountsOf(tx: Tx, workspaceId: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const mounts = new Map<string, string[]>();
  let cursor: string | null = null;
  do {
    const page = await tx.sandboxes.list({ workspaceId, states: HOLDING, cursor, limit: PAGE });
    for (const { uid, id, generation, state } of page.items) {
      if (state === 'failed' && (await nothingLeft(tx, uid))) continue;
      const documents = await tx.sandboxes.documents(uid, generation);
      for (const { volumeId } of documents?.recipe.volumes ?? []) {
        if (volumeId !== null) mounts.set(volumeId, [...(mounts.get(volumeId) ?? []), id]);
      }
    }
    cursor = page.nextCursor;
  } while (cursor !== null);
  return mounts;
}
