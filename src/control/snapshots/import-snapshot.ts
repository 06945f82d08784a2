import type { SnapshotFileHeader } from '../../contract/assets/snapshot.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import type { Extension } from '../../core/ports/extension.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { resolveRecipe } from '../../core/recipe/resolve-recipe.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { contextFor } from '../backends/backend-context.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { measureSnapshots } from './measure-snapshots.ts';
import { snapshotExpiry } from './new-snapshot.ts';
import { snapshotEvent } from './snapshot-event.ts';
import { readSnapshotFile } from './snapshot-file.ts';
import { requireSnapshotRoom, thinSnapshots } from './snapshot-room.ts';

/** An import that is not complete by then was given up; the sweep removes what it left. */
const GIVEN_UP_MS = 6 * 3_600_000;

export interface ImportOptions {
  /** Instead of the one that the file names. */
  readonly profile?: string | undefined;
  readonly name?: string | undefined;
}

function importer(deps: ControlPorts, id: string): Extension & Required<Pick<Extension, 'importSnapshot'>> {
  const extension = deps.extensions.get(id);
  if (extension?.importSnapshot) return extension as Extension & Required<Pick<Extension, 'importSnapshot'>>;
  throw new SandboxerError('SBX_UNSUPPORTED', `No backend here takes a snapshot of ${id}.`, {
    creation: 'not_created',
  });
}

interface ImportSnapshot extends ImportOptions {
  readonly file: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
}

/**
 * Imports a snapshot from a file. It can be restored only as this installation's own profile, never as anything that the file
 * says: the file brings files.
 */
export async function importSnapshot(
  deps: ControlPorts,
  caller: Caller,
  { file, signal, ...options }: ImportSnapshot,
): Promise<SnapshotRecord> {
  requireScope(caller, 'sandboxes');
  const { header, rest } = await readSnapshotFile(file);
  const extension = importer(deps, header.extension);
  await measureSnapshots(deps, () => caller.workspaceId);
  const begun = await begin(deps, caller, header, options);
  try {
    const spec = { snapshotId: begun.id, name: begun.name, owner: deps.owner };
    const taken = await extension.importSnapshot(spec, rest, await contextFor(deps, null, signal));
    return await settle(deps, begun, (tx, current, now) => {
      const { ref, sizeBytes, digest = null } = taken;
      const expiresAt = snapshotExpiry(deps, { name: current.name, retainSeconds: null }, now);
      return finish(
        tx,
        deps,
        { ...current, state: 'available', ref, sizeBytes, digest, expiresAt },
        { now, details: {} },
      );
    });
  } catch (error) {
    await settle(deps, begun, (tx, current, now) => {
      const reason = error instanceof SandboxerError ? error.detail : 'It could not be imported.';
      return finish(tx, deps, { ...current, state: 'deleting' }, { now, details: { reason } });
    });
    throw error;
  }
}

async function begin(
  deps: ControlPorts,
  caller: Caller,
  header: SnapshotFileHeader,
  { profile: wanted, name }: ImportOptions,
): Promise<SnapshotRecord> {
  const { profile } = deps.catalogue(caller.workspaceId).get(wanted ?? header.profile);
  const request = { profile: profile.id, inputs: {}, consumer: {}, labels: {}, elevated: false };
  const { recipe } = resolveRecipe(profile, request, caller);
  const id = deps.ids.next('snap');
  const recorded = { label: 'import-snapshot', action: 'importSnapshot', target: () => id };
  return await recordedTransaction(deps, caller, recorded, async (tx) => {
    await requireSnapshotRoom(tx, deps, caller.workspaceId);
    const now = deps.clock.now();
    const snapshot: SnapshotRecord = {
      id,
      workspaceId: caller.workspaceId,
      version: 1,
      name: name ?? header.name,
      sandboxUid: `import-${id}`,
      sandboxId: header.sandbox_id,
      generation: header.generation,
      profileId: profile.id,
      profileVersion: profile.version,
      recipe,
      extensionId: header.extension,
      hostId: null,
      kind: header.kind,
      state: 'creating',
      ref: null,
      sizeBytes: null,
      labels: header.labels,
      actor: caller.actor,
      consumer: {},
      createdAt: now,
      expiresAt: now + GIVEN_UP_MS,
      eventSeq: 1,
      deletedAt: null,
      cause: 'import',
      digest: null,
      providerKeyId: null,
    };
    await tx.snapshots.insert(snapshot);
    const cause = 'import';
    await tx.events.append([
      snapshotEvent(deps, snapshot, {
        type: 'snapshot.creating',
        actor: caller.actor,
        now,
        details: { cause },
      }),
    ]);
    return snapshot;
  });
}

type Change = (tx: Tx, current: SnapshotRecord, now: number) => Promise<SnapshotRecord>;

async function settle(deps: ControlPorts, begun: SnapshotRecord, change: Change): Promise<SnapshotRecord> {
  return await deps.store.transaction('import-settled', async (tx) => {
    const current = await tx.snapshots.get(begun.id);
    if (current?.state !== 'creating') return current ?? begun;
    return await change(tx, current, deps.clock.now());
  });
}

interface FinishedImport {
  readonly now: number;
  readonly details: Record<string, unknown>;
}

async function finish(
  tx: Tx,
  deps: ControlPorts,
  next: SnapshotRecord,
  { now, details }: FinishedImport,
): Promise<SnapshotRecord> {
  const numbered = { ...next, eventSeq: next.eventSeq + 1 };
  const stored = await tx.snapshots.update(numbered);
  const type = next.state === 'available' ? 'snapshot.available' : 'snapshot.failed';
  await tx.events.append([
    snapshotEvent(deps, numbered, { type, actor: next.actor, now, details: { cause: 'import', ...details } }),
  ]);
  if (next.state === 'available') await thinSnapshots(tx, deps, next.workspaceId);
  return stored;
}
