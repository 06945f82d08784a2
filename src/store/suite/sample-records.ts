import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import type { UploadRecord } from '../../core/assets/upload.ts';
import type { GrantRecord } from '../../core/credits/grant.ts';
import type { MeterRecord } from '../../core/credits/meter.ts';
import type { HoldRecord, TransferDraft } from '../../core/credits/transfer.ts';
import type { EventDraft } from '../../core/events/event.ts';
import type { AttemptRecord } from '../../core/lifecycle/attempt.ts';
import { attemptIdOf } from '../../core/lifecycle/attempt.ts';
import type { SandboxDocuments, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { ProviderKeyRecord } from '../../core/tenancy/provider-key.ts';

/** Records for the store's own tests and measurements: complete, and changed where a case needs it. */

export const T0 = 1_750_000_000_000;

export function sampleSandbox(over: Partial<SandboxRecord> = {}): SandboxRecord {
  const uid = over.uid ?? 'sbx_0001';
  return {
    uid,
    id: over.id ?? uid,
    workspaceId: 'default',
    orgId: 'default',
    generation: 1,
    version: 1,
    state: 'requested',
    stateSince: T0,
    pauseKind: null,
    profileId: 'profile.agent-dev',
    profileVersion: '1.0.0',
    fingerprint: 'f'.repeat(64),
    requestDigest: 'd'.repeat(64),
    scope: 'session',
    reuseKey: null,
    labels: {},
    consumer: {},
    actor: 'agt',
    keyId: null,
    elevated: false,
    exposedSecrets: [],
    createdAt: T0,
    readyAt: null,
    lastActivityAt: null,
    deadlineAt: T0 + 3_600_000,
    maxDeadlineAt: T0 + 7_200_000,
    idleReapSeconds: null,
    idleDeadlineAt: null,
    attempt: null,
    extensionId: null,
    hostId: null,
    isolation: null,
    region: 'eu',
    handle: null,
    reachability: null,
    notes: [],
    failure: null,
    operation: null,
    recreating: false,
    lease: null,
    workDueAt: null,
    holdId: null,
    meterId: null,
    eventSeq: 0,
    inputs: [],
    ...over,
  };
}

function sampleRecipe(): SandboxDocuments['recipe'] {
  return {
    profileId: 'profile.agent-dev',
    profileVersion: '1.0.0',
    pinnedExtension: null,
    image: 'host',
    isolation: 'policy',
    persistence: 'ephemeral',
    variables: { LANG: 'C.UTF-8' },
    setupRun: ['true'],
    instructions: 'Work in /work.',
    instructionsRef: null,
    secretRefs: [],
    inputs: { branch: 'main' },
    elevated: false,
    ttlSeconds: 3600,
    maxTtlSeconds: 7200,
    idleReapSeconds: null,
    requires: {},
    route: {},
  } as unknown as SandboxDocuments['recipe'];
}

export function sampleDocuments(uid: string, generation = 1): SandboxDocuments {
  return {
    uid,
    generation,
    request: { profile: 'profile.agent-dev', inputs: {}, consumer: {}, labels: {}, elevated: false },
    recipe: sampleRecipe(),
    plan: {
      version: 1,
      strategy: 'prefer-self-hosted',
      catalogue_version: '1',
      price_version: '1',
      health_at: '2025-06-15T15:06:40.000Z',
      seed: uid,
      pinned: null,
      candidates: [],
      reason: 'The only one.',
    },
    origin: { kind: 'recipe' },
  };
}

export function sampleAttempt(uid: string, over: Partial<AttemptRecord> = {}): AttemptRecord {
  const generation = over.generation ?? 1;
  const n = over.n ?? 1;
  return {
    attemptId: attemptIdOf(uid, generation, n),
    sandboxUid: uid,
    generation,
    n,
    extensionId: 'ext.local',
    hostId: null,
    reserved: { millicpu: 0, memoryMb: 0 },
    state: 'journalled',
    handle: null,
    creation: null,
    error: null,
    startedAt: T0,
    provisionedAt: null,
    endedAt: null,
    judged: null,
    teardownTries: 0,
    teardownError: null,
    stuckSince: null,
    hedgeAt: null,
    hedges: null,
    outrunBy: null,
    providerKeyId: null,
    ...over,
  };
}

export function sampleEvent(sandboxUid: string | null, over: Partial<EventDraft> = {}): EventDraft {
  return {
    id: `evt-${sandboxUid}`,
    at: T0,
    type: 'sandbox.requested',
    workspaceId: 'default',
    subject: sandboxUid ?? 'workspace:default',
    subjectSeq: 1,
    sandboxUid,
    sandboxId: sandboxUid,
    generation: 1,
    state: 'requested',
    previousState: null,
    actor: 'agt',
    consumer: {},
    details: { reason: 'test' },
    ...over,
  };
}

export function sampleSnapshot(id: string, over: Partial<SnapshotRecord> = {}): SnapshotRecord {
  return {
    id,
    workspaceId: 'default',
    version: 1,
    name: null,
    sandboxUid: 'sbx_0001',
    sandboxId: 'sbx_0001',
    generation: 1,
    profileId: 'profile.agent-dev',
    profileVersion: '1.0.0',
    recipe: sampleRecipe(),
    extensionId: 'ext.local',
    hostId: null,
    kind: 'filesystem',
    state: 'creating',
    ref: null,
    sizeBytes: null,
    labels: {},
    actor: 'agt',
    consumer: {},
    createdAt: T0,
    expiresAt: null,
    eventSeq: 0,
    deletedAt: null,
    cause: 'request',
    digest: null,
    providerKeyId: null,
    ...over,
  };
}

export function sampleMeter(id: string, over: Partial<MeterRecord> = {}): MeterRecord {
  return {
    id,
    sandboxUid: 'sbx_0001',
    workspaceId: 'default',
    generation: 1,
    extensionId: 'ext.local',
    holdId: 'hold-1',
    priceVersion: '1',
    openedAt: T0,
    closedAt: null,
    runningRate: 123_456_789_012_345_678_901n,
    pausedRate: 0n,
    rate: 123_456_789_012_345_678_901n,
    since: T0,
    accrued: 0n,
    billedMs: 0,
    createFeeMicroUsd: 0,
    minimumSeconds: 0,
    chargedMicroUsd: 0,
    estimateMicroUsd: 1000,
    quantumMs: 1,
    fundedUntil: null,
    fundAt: null,
    lowSince: null,
    sandboxId: 'sbx_0001',
    profileId: 'profile.agent-dev',
    actor: 'agt',
    keyId: null,
    runId: null,
    evidence: 'own_clock',
    backendMs: null,
    observedMs: null,
    millicpu: 1000,
    memoryMb: 1024,
    cpuMs: null,
    peakMemoryMb: null,
    providerKeyId: null,
    payer: 'credits',
    ...over,
  };
}

export function sampleHold(id: string, over: Partial<HoldRecord> = {}): HoldRecord {
  return {
    id,
    workspaceId: 'default',
    sandboxUid: 'sbx_0001',
    generation: 1,
    state: 'open',
    purse: 'liab:credits:default',
    heldMicroUsd: 0,
    capturedMicroUsd: 0,
    budgets: [],
    createdAt: T0,
    resolvedAt: null,
    ...over,
  };
}

export function sampleTransfer(id: string, over: Partial<TransferDraft> = {}): TransferDraft {
  return {
    id,
    at: T0,
    kind: 'grant',
    debit: 'asset:external',
    credit: 'liab:credits:default',
    amountMicroUsd: 1_000_000,
    workspaceId: 'default',
    holdId: null,
    sandboxUid: null,
    ...over,
  };
}

export function sampleUpload(id: string, over: Partial<UploadRecord> = {}): UploadRecord {
  return {
    id,
    workspaceId: 'default',
    digest: `sha256:${'a'.repeat(64)}`,
    sizeBytes: 1024,
    entries: 1,
    origin: { kind: 'upload' },
    createdAt: T0,
    expiresAt: T0 + 3_600_000,
    ...over,
  };
}

export function sampleGrant(id: string, over: Partial<GrantRecord> = {}): GrantRecord {
  return {
    id,
    workspaceId: 'default',
    purse: 'liab:credits:default',
    kind: 'grant',
    amountMicroUsd: 1_000_000,
    remainingMicroUsd: 1_000_000,
    createdAt: T0,
    expiresAt: null,
    endedAt: null,
    ...over,
  };
}

export function sampleProviderKey(id: string, over: Partial<ProviderKeyRecord> = {}): ProviderKeyRecord {
  return {
    id,
    workspaceId: 'default',
    extensionId: 'ext.saas-stub',
    version: 1,
    label: '',
    sealed: 'sealed',
    hint: 'last',
    state: 'active',
    createdAt: T0,
    checkedAt: T0,
    refusedAt: null,
    ...over,
  };
}
