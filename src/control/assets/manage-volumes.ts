import type { CreateVolumeRequest } from '../../contract/assets/volume.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { VolumeRecord } from '../../core/assets/volume.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope, visibleWorkspace } from '../../core/tenancy/caller.ts';
import { contextFor, extensionOf } from '../backends/backend-context.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { findKept, requireOwn } from './find-kept.ts';
import { sweepKept } from './sweep-kept.ts';
import { mountsOf } from './volume-mounts.ts';

const GIVEN_UP_MS = 600_000;

export interface VolumeView {
  readonly volume: VolumeRecord;
  /** Ids of the sandboxes that have it. */
  readonly mountedBy: readonly string[];
}

interface CreateVolume {
  readonly request: CreateVolumeRequest;
  readonly signal: AbortSignal;
}

/** Names are unique among the volumes of a workspace. */
export async function createVolume(
  deps: ControlPorts,
  caller: Caller,
  { request, signal }: CreateVolume,
): Promise<VolumeView> {
  requireScope(caller, 'sandboxes');
  const extension = extensionOf(deps, request.extension);
  const { id: extensionId } = extension.header;
  if (!extension.createVolume) {
    throw new SandboxerError('SBX_UNSUPPORTED', `${extensionId} has no volumes.`, {
      backend: extensionId,
      remedy: 'Choose a backend whose vector has "volumes".',
    });
  }
  const { maxVolumes } = deps.settings;
  const now = deps.clock.now();
  const target = ({ id }: VolumeRecord) => id;
  const recorded = { label: 'volume-begin', action: 'createVolume', target };
  const begun = await recordedTransaction(deps, caller, recorded, async (tx) => {
    const own = (await tx.volumes.list(caller.workspaceId)).filter(
      (row) => row.workspaceId === caller.workspaceId,
    );
    if (own.some(({ name }) => name === request.name)) {
      throw new SandboxerError('SBX_CONFLICT', `There is a volume "${request.name}" already.`, {
        field: 'name',
        remedy: 'Choose another name, or use the one that is there.',
      });
    }
    if (own.length >= maxVolumes) {
      throw new SandboxerError('SBX_QUOTA_EXCEEDED', `The workspace has its ${maxVolumes} volumes already.`, {
        remedy: 'Remove volumes that are not used any more.',
      });
    }
    const record: VolumeRecord = {
      id: deps.ids.next('vol'),
      workspaceId: caller.workspaceId,
      version: 1,
      name: request.name,
      shared: false,
      state: 'making',
      createdAt: now,
      expiresAt: now + GIVEN_UP_MS,
      extensionId,
      sizeMb: request.size_mb,
      labels: request.labels,
    };
    await tx.volumes.insert(record);
    return record;
  });
  try {
    const spec = { volumeId: begun.id, owner: deps.owner, sizeMb: begun.sizeMb };
    await extension.createVolume(spec, await contextFor(deps, null, signal));
    const volume = await deps.store.transaction('volume-available', (tx) =>
      tx.volumes.update({ ...begun, state: 'available', expiresAt: null }),
    );
    return { volume, mountedBy: [] };
  } catch (error) {
    await deps.store.transaction('volume-failed', async (tx) => {
      const current = await tx.volumes.get(begun.id);
      if (current) await tx.volumes.update({ ...current, state: 'deleting' });
    });
    await sweepKept(deps, begun.id);
    throw error;
  }
}

export async function listVolumes(deps: ControlPorts, caller: Caller): Promise<readonly VolumeView[]> {
  requireScope(caller, 'read');
  return await deps.store.read('list-volumes', async (tx) => {
    const volumes = await tx.volumes.list(visibleWorkspace(caller));
    const mounts = new Map<string, readonly string[]>();
    for (const workspaceId of new Set(volumes.map((volume) => volume.workspaceId))) {
      for (const [id, by] of await mountsOf(tx, workspaceId)) mounts.set(id, by);
    }
    return volumes.map((volume) => ({ volume, mountedBy: mounts.get(volume.id) ?? [] }));
  });
}

export async function getVolume(
  deps: ControlPorts,
  caller: Caller,
  { ref }: { readonly ref: string },
): Promise<VolumeView> {
  requireScope(caller, 'read');
  return await deps.store.read('get-volume', async (tx) => {
    const volume = await findKept(tx.volumes, caller, { noun: 'volume', ref });
    return { volume, mountedBy: (await mountsOf(tx, volume.workspaceId)).get(volume.id) ?? [] };
  });
}

/** Deletes a volume, unless a sandbox mounts it: its content may be in use. */
export async function deleteVolume(
  deps: ControlPorts,
  caller: Caller,
  { ref }: { readonly ref: string },
): Promise<void> {
  requireScope(caller, 'sandboxes');
  const target = ({ id }: VolumeRecord) => id;
  const recorded = { label: 'delete-volume', action: 'deleteVolume', target };
  const marked = await recordedTransaction(deps, caller, recorded, async (tx) => {
    const volume = await findKept(tx.volumes, caller, { noun: 'volume', ref });
    requireOwn(caller, volume, 'volume');
    if (volume.state === 'deleting') return volume;
    const mountedBy = (await mountsOf(tx, volume.workspaceId)).get(volume.id) ?? [];
    if (mountedBy.length > 0) {
      throw new SandboxerError(
        'SBX_CONFLICT',
        `The volume "${volume.name}" is mounted by ${mountedBy.slice(0, 5).join(', ')}.`,
        { remedy: 'Destroy these sandboxes first.' },
      );
    }
    return await tx.volumes.update({ ...volume, state: 'deleting' });
  });
  await sweepKept(deps, marked.id);
}
