import type { ControlPorts } from '../ports/control-ports.ts';

const BATCH = 100;
/** An archive without a row may be one that is just being made known. */
const STRAY_MS = 3_600_000;

/** Removes uploads that were not used in time, and archives that a crash left without a row. */
export async function sweepUploads(deps: ControlPorts): Promise<number> {
  const { inputs: port } = deps;
  if (!port) return 0;
  const now = deps.clock.now();
  const due = await deps.store.read('due-uploads', (tx) => tx.uploads.due(now, BATCH));
  for (const { id } of due) {
    await port.drop(id, () =>
      deps.store.transaction('sweep-upload', async (tx) => {
        const record = await tx.uploads.get(id);
        if (record && (record.expiresAt > now || (await tx.uploads.inUse(id)))) return false;
        await tx.uploads.remove(id);
        return true;
      }),
    );
  }
  for (const id of await port.kept(now - STRAY_MS)) {
    await port.drop(id, () =>
      deps.store.read('stray-upload', async (tx) => (await tx.uploads.get(id)) === null),
    );
  }
  return due.length;
}
