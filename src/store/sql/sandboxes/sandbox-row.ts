import type { SandboxDocuments, SandboxRecord } from '../../../core/lifecycle/sandbox.ts';
import { claimableAt, establishedOn, watchedDeadline, watchedIdleDeadline } from '../../sandbox-watch.ts';
import { readDocument, readDocumentOrNull, writeDocument, writeDocumentOrNull } from '../session/document.ts';
import type { SandboxDocumentsRow, SandboxRow } from '../session/schema.ts';

export function sandboxRow(record: SandboxRecord): SandboxRow {
  const { consumer, lease } = record;
  return {
    uid: record.uid,
    id: record.id,
    workspace_id: record.workspaceId,
    org_id: record.orgId,
    generation: record.generation,
    version: record.version,
    state: record.state,
    state_since: record.stateSince,
    pause_kind: record.pauseKind,
    profile_id: record.profileId,
    profile_version: record.profileVersion,
    fingerprint: record.fingerprint,
    request_digest: record.requestDigest,
    scope: record.scope,
    reuse_key: record.reuseKey,
    labels: writeDocument(record.labels),
    consumer: writeDocument(consumer),
    actor: record.actor,
    key_id: record.keyId,
    elevated: record.elevated ? 1 : 0,
    exposed_secrets: writeDocument(record.exposedSecrets),
    created_at: record.createdAt,
    ready_at: record.readyAt,
    last_activity_at: record.lastActivityAt,
    deadline_at: record.deadlineAt,
    max_deadline_at: record.maxDeadlineAt,
    idle_reap_seconds: record.idleReapSeconds,
    idle_deadline_at: record.idleDeadlineAt,
    attempt: record.attempt,
    extension_id: record.extensionId,
    host_id: record.hostId,
    isolation: record.isolation,
    region: record.region,
    handle: writeDocumentOrNull(record.handle),
    reachability: writeDocumentOrNull(record.reachability),
    notes: writeDocument(record.notes),
    failure: writeDocumentOrNull(record.failure),
    operation: writeDocumentOrNull(record.operation),
    recreating: record.recreating ? 1 : 0,
    lease_owner: lease?.owner ?? null,
    lease_token: lease?.token ?? null,
    lease_until: lease?.until ?? null,
    work_due_at: record.workDueAt,
    hold_id: record.holdId,
    meter_id: record.meterId,
    event_seq: record.eventSeq,
    harness: consumer.harness ?? null,
    session_id: consumer.session_id ?? null,
    run_id: consumer.run_id ?? null,
    job_id: consumer.job_id ?? null,
    claimable_at: claimableAt(record),
    watched_deadline_at: watchedDeadline(record),
    watched_idle_at: watchedIdleDeadline(record),
    established_on: establishedOn(record),
    inputs: writeDocument(record.inputs),
  };
}

export function sandboxRecord(row: SandboxRow): SandboxRecord {
  return {
    uid: row.uid,
    id: row.id,
    workspaceId: row.workspace_id,
    orgId: row.org_id,
    generation: row.generation,
    version: row.version,
    state: row.state as SandboxRecord['state'],
    stateSince: row.state_since,
    pauseKind: row.pause_kind as SandboxRecord['pauseKind'],
    profileId: row.profile_id,
    profileVersion: row.profile_version,
    fingerprint: row.fingerprint,
    requestDigest: row.request_digest,
    scope: row.scope as SandboxRecord['scope'],
    reuseKey: row.reuse_key,
    labels: readDocument(row.labels),
    consumer: readDocument(row.consumer),
    actor: row.actor as SandboxRecord['actor'],
    keyId: row.key_id,
    elevated: row.elevated === 1,
    exposedSecrets: readDocument(row.exposed_secrets),
    createdAt: row.created_at,
    readyAt: row.ready_at,
    lastActivityAt: row.last_activity_at,
    deadlineAt: row.deadline_at,
    maxDeadlineAt: row.max_deadline_at,
    idleReapSeconds: row.idle_reap_seconds,
    idleDeadlineAt: row.idle_deadline_at,
    attempt: row.attempt,
    extensionId: row.extension_id,
    hostId: row.host_id,
    isolation: row.isolation,
    region: row.region,
    handle: readDocumentOrNull(row.handle),
    reachability: readDocumentOrNull(row.reachability),
    notes: readDocument(row.notes),
    failure: readDocumentOrNull(row.failure),
    operation: readDocumentOrNull(row.operation),
    recreating: row.recreating === 1,
    lease: leaseOf(row),
    workDueAt: row.work_due_at,
    holdId: row.hold_id,
    meterId: row.meter_id,
    eventSeq: row.event_seq,
    inputs: readDocument(row.inputs),
  };
}

function leaseOf({ lease_owner, lease_token, lease_until }: SandboxRow): SandboxRecord['lease'] {
  if (lease_owner === null || lease_token === null || lease_until === null) return null;
  return { owner: lease_owner, token: lease_token, until: lease_until };
}

export function documentsRow(documents: SandboxDocuments): SandboxDocumentsRow {
  return {
    uid: documents.uid,
    generation: documents.generation,
    request: writeDocument(documents.request),
    recipe: writeDocument(documents.recipe),
    plan: writeDocument(documents.plan),
    origin: writeDocument(documents.origin),
  };
}

/**
 * Parses the recipe at once: every reader needs it, and some could not catch a failure to parse it later. The other documents are
 * parsed on first access: ending a sandbox reads none of them.
 */
export function documentsRecord(row: SandboxDocumentsRow): SandboxDocuments {
  const request = lazily<SandboxDocuments['request']>(row.request);
  const plan = lazily<SandboxDocuments['plan']>(row.plan);
  const origin = lazily<SandboxDocuments['origin']>(row.origin);
  return {
    uid: row.uid,
    generation: row.generation,
    recipe: readDocument(row.recipe),
    get request() {
      return request();
    },
    get plan() {
      return plan();
    },
    get origin() {
      return origin();
    },
  };
}

function lazily<T>(text: string): () => T {
  let read: { readonly value: T } | null = null;
  return () => {
    read ??= { value: readDocument<T>(text) };
    return read.value;
  };
}
