import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { contextFor } from '../backends/backend-context.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

const PAGE = 500;
const TIMEOUT_MS = 60_000;

async function unmeasured(
  deps: ControlPorts,
  workspaceOf: (tx: Tx) => Promise<string> | string,
): Promise<SnapshotRecord[]> {
  return await deps.store.read('unmeasured-snapshots', async (tx) => {
    const workspaceId = await workspaceOf(tx);
    const found: SnapshotRecord[] = [];
    let cursor: string | null = null;
    do {
      const page = await tx.snapshots.list({ workspaceId, cursor, limit: PAGE });
      found.push(...page.items.filter((one) => one.state === 'available' && one.sizeBytes === null));
      cursor = page.nextCursor;
    } while (cursor !== null);
    return found;
  });
}

/**
 * Measures snapshots before a limit on bytes is judged: a backend that takes a snapshot at once learns its size only later. A
 * snapshot that cannot be measured counts as nothing, and is measured again next time.
 */
export async function measureSnapshots(
  deps: ControlPorts,
  workspaceOf: (tx: Tx) => Promise<string> | string,
): Promise<void> {
  if ((deps.settings.maxSnapshotBytes ?? null) === null) return;
  for (const snapshot of await unmeasured(deps, workspaceOf)) {
    const extension = deps.extensions.get(snapshot.extensionId);
    if (!extension?.measureSnapshot) continue;
    const spec = { snapshotId: snapshot.id, name: snapshot.name, owner: deps.owner };
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const context = await contextFor(deps, snapshot.hostId, signal, snapshot.providerKeyId);
      const sizeBytes = await extension.measureSnapshot(snapshot.ref, spec, context);
      await deps.store.transaction('snapshot-measured', async (tx) => {
        const current = await tx.snapshots.get(snapshot.id);
        if (current?.state === 'available') await tx.snapshots.update({ ...current, sizeBytes });
      });
    } catch (error) {
      deps.log.warn({ err: error, snapshot: snapshot.id }, 'a snapshot could not be measured');
    }
  }
}
