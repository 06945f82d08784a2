import type { SnapshotRecord } from '../../../core/assets/snapshot.ts';
import { readDocument, writeDocument } from '../session/document.ts';
import type { SnapshotRow } from '../session/schema.ts';

export function snapshotRow(record: SnapshotRecord): SnapshotRow {
  return {
    id: record.id,
    workspace_id: record.workspaceId,
    version: record.version,
    name: record.name,
    sandbox_uid: record.sandboxUid,
    sandbox_id: record.sandboxId,
    generation: record.generation,
    profile_id: record.profileId,
    profile_version: record.profileVersion,
    recipe: writeDocument(record.recipe),
    extension_id: record.extensionId,
    host_id: record.hostId,
    kind: record.kind,
    state: record.state,
    ref: writeDocument(record.ref),
    size_bytes: record.sizeBytes,
    labels: writeDocument(record.labels),
    actor: record.actor,
    consumer: writeDocument(record.consumer),
    created_at: record.createdAt,
    expires_at: record.expiresAt,
    event_seq: record.eventSeq,
    deleted_at: record.deletedAt,
    cause: record.cause,
    digest: record.digest,
    provider_key_id: record.providerKeyId,
  };
}

export function snapshotRecord(row: SnapshotRow): SnapshotRecord {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    version: row.version,
    name: row.name,
    sandboxUid: row.sandbox_uid,
    sandboxId: row.sandbox_id,
    generation: row.generation,
    profileId: row.profile_id,
    profileVersion: row.profile_version,
    recipe: readDocument(row.recipe),
    extensionId: row.extension_id,
    hostId: row.host_id,
    kind: row.kind as SnapshotRecord['kind'],
    state: row.state as SnapshotRecord['state'],
    ref: readDocument(row.ref),
    sizeBytes: row.size_bytes,
    labels: readDocument(row.labels),
    actor: row.actor as SnapshotRecord['actor'],
    consumer: readDocument(row.consumer),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    eventSeq: row.event_seq,
    deletedAt: row.deleted_at,
    cause: row.cause as SnapshotRecord['cause'],
    digest: row.digest,
    providerKeyId: row.provider_key_id,
  };
}
