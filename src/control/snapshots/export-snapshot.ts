import { SnapshotFileHeader } from '../../contract/assets/snapshot.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { contextFor, extensionOf } from '../backends/backend-context.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { findSnapshot } from './find-snapshot.ts';

export interface SnapshotFile {
  readonly snapshot: SnapshotRecord;
  readonly body: AsyncIterable<Uint8Array>;
}

interface ExportSnapshot {
  readonly id: string;
  readonly signal: AbortSignal;
}

/** A snapshot as one file: a line that says what it is, and what its backend makes of it. */
export async function exportSnapshot(
  deps: ControlPorts,
  caller: Caller,
  { id, signal }: ExportSnapshot,
): Promise<SnapshotFile> {
  requireScope(caller, 'sandboxes');
  const snapshot = await deps.store.read('export-snapshot', (tx) => findSnapshot(tx, caller, id));
  if (snapshot.state !== 'available') {
    throw new SandboxerError('SBX_INVALID_STATE', `A snapshot that is ${snapshot.state} cannot be exported.`);
  }
  const extension = extensionOf(deps, snapshot.extensionId);
  if (!extension.exportSnapshot) {
    throw new SandboxerError('SBX_UNSUPPORTED', `${snapshot.extensionId} cannot export a snapshot.`, {
      backend: snapshot.extensionId,
    });
  }
  const spec = { snapshotId: snapshot.id, name: snapshot.name, owner: deps.owner };
  const context = await contextFor(deps, snapshot.hostId, signal, snapshot.providerKeyId);
  const { digest, body } = await extension.exportSnapshot(snapshot.ref, spec, context);
  if (snapshot.digest === null) {
    await deps.store.transaction('snapshot-digest', async (tx) => {
      const current = await tx.snapshots.get(snapshot.id);
      if (current?.state === 'available') await tx.snapshots.update({ ...current, digest });
    });
  }
  const header = SnapshotFileHeader.parse({
    format: 'sandboxer-snapshot',
    version: 1,
    extension: snapshot.extensionId,
    kind: snapshot.kind,
    profile: snapshot.profileId,
    profile_version: snapshot.profileVersion,
    sandbox_id: snapshot.sandboxId,
    generation: snapshot.generation,
    name: snapshot.name,
    labels: snapshot.labels,
    digest,
    created_at: new Date(snapshot.createdAt).toISOString(),
  });
  return { snapshot, body: withHeader(header, body) };
}

async function* withHeader(
  header: SnapshotFileHeader,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${JSON.stringify(header)}\n`);
  yield* body;
}
