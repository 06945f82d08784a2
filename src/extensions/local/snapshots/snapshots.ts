import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Json } from '../../../contract/values/json.ts';
import type { ExportedSnapshot, SnapshotSpec, TakenSnapshot } from '../../../core/ports/extension.ts';
import { failed } from '../engine/failure.ts';
import type { SnapshotRecord } from '../state/layers.ts';
import type { RootFs } from '../state/root-fs.ts';
import { rootFsOf } from '../state/root-fs.ts';
import type { Captured, Captures } from './captures.ts';
import { LayerDigests } from './layer-digests.ts';
import type { ArchiveParts } from './snapshot-archive.ts';
import { exportArchive, importArchive } from './snapshot-archive.ts';
import { readSnapshotRef } from './snapshot-ref.ts';

function noSnapshot(): SandboxerError {
  return new SandboxerError('SBX_NOT_FOUND', 'The snapshot is no longer on this machine.', {
    backend: 'ext.local',
    creation: 'not_created',
  });
}

/** Returns whether a layer came from a seal or an import; a skeleton is generated. */
const isKept = (layer: string) => layer.startsWith('layers/');

/** Snapshots on this machine: each a record that names its layers. */
export class Snapshots {
  readonly #archive: ArchiveParts;
  readonly #captures: Captures;

  constructor(parts: Omit<ArchiveParts, 'digests'>, captures: Captures) {
    this.#archive = { ...parts, digests: new LayerDigests(parts.engine, parts.layout) };
    this.#captures = captures;
  }

  async take(attemptId: string, spec: SnapshotSpec): Promise<TakenSnapshot> {
    const { layers, digests } = this.#archive;
    const ref = { snapshot_id: spec.snapshotId, owner: spec.owner };
    const existing = layers.readSnapshot(spec.snapshotId);
    if (existing !== null) return { ref, sizeBytes: existing.sizeBytes };
    const { rootFs, sizeBytes } = await this.#captures.capture(attemptId, { lasting: true });
    await this.#keep(spec, { rootFs, sizeBytes });
    for (const layer of rootFs.layers) if (isKept(layer)) void digests.seal(layer).catch(() => {});
    return { ref, sizeBytes };
  }

  /** Returns the layers, once each of them is verified against its seal. */
  async verified(ref: Json): Promise<RootFs> {
    const snapshot = this.#find(ref);
    for (const layer of snapshot.layers) if (isKept(layer)) await this.#archive.digests.verify(layer);
    return rootFsOf(snapshot);
  }

  async export(ref: Json): Promise<ExportedSnapshot> {
    return await exportArchive(this.#archive, rootFsOf(this.#find(ref)));
  }

  async import(spec: SnapshotSpec, body: AsyncIterable<Uint8Array>): Promise<TakenSnapshot> {
    const { hostImage } = await this.#archive.engine.machinery();
    const { rootFs, digest, sizeBytes } = await importArchive(this.#archive, body, hostImage);
    await this.#keep(spec, { rootFs, sizeBytes });
    return { ref: { snapshot_id: spec.snapshotId, owner: spec.owner }, sizeBytes, digest };
  }

  /** Returns the bytes that it added; counts every file where that was not done when it was taken. */
  async measure(ref: Json): Promise<number> {
    const { layers, engine } = this.#archive;
    const snapshot = this.#find(ref);
    if (snapshot.sizeBytes !== null) return snapshot.sizeBytes;
    const { bytes } = await engine
      .call('measure', { layer: snapshot.layers[0] ?? '' })
      .catch((error: unknown) => {
        throw failed(error);
      });
    layers.noteSize(snapshot.snapshotId, Number(bytes));
    return Number(bytes);
  }

  /** Removes the record; returns whether this owner had one. Its layers are left to the next collection. */
  remove({ snapshotId, owner }: SnapshotSpec): boolean {
    const { layers } = this.#archive;
    if (layers.readSnapshot(snapshotId)?.owner !== owner) return false;
    layers.removeSnapshot(snapshotId);
    return true;
  }

  /** Writes the record after its layers are on the disk, so that a record never names an incomplete layer. */
  async #keep({ snapshotId, owner, name }: SnapshotSpec, { rootFs, sizeBytes }: Captured): Promise<void> {
    const { layers } = this.#archive;
    const record = { snapshotId, owner, name, createdAt: Date.now(), ...rootFs, sizeBytes };
    try {
      await layers.writeSnapshot({ version: 1, ...record });
    } finally {
      for (const layer of rootFs.layers) layers.settled(layer);
    }
  }

  #find(ref: Json): SnapshotRecord {
    const { snapshot_id, owner } = readSnapshotRef(ref);
    const snapshot = this.#archive.layers.readSnapshot(snapshot_id);
    if (snapshot === null || snapshot.owner !== owner) throw noSnapshot();
    return snapshot;
  }
}
