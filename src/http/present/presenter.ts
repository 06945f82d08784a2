import type { z } from 'zod';
import type { Snapshot } from '../../contract/assets/snapshot.ts';
import type { Upload } from '../../contract/assets/upload.ts';
import type { ExtensionEntry } from '../../contract/extensions/extension.ts';
import type { Balance, Meter, Transfer } from '../../contract/money/money.ts';
import type { ProfileEntry, ProfileVerdict } from '../../contract/profiles/profile.ts';
import type { RouteExplanation } from '../../contract/routing/route.ts';
import type { ExtendedSandbox, Sandbox } from '../../contract/sandboxes/sandbox.ts';
import type { SetupLog } from '../../contract/sandboxes/setup-log.ts';
import type { ApiKey } from '../../contract/tenancy/tenancy.ts';
import type { WorkspaceBalance } from '../../control/money/credits.ts';
import type { ControlPorts } from '../../control/ports/control-ports.ts';
import type { ProfileView } from '../../control/profiles/list-profiles.ts';
import type { ProfileVerdict as Verdict } from '../../control/profiles/validate-profile.ts';
import type { Extended } from '../../control/sandboxes/extend-sandbox.ts';
import type { RouteView, SetupView } from '../../control/sandboxes/get-sandbox.ts';
import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import type { UploadRecord } from '../../core/assets/upload.ts';
import type { MeterRecord } from '../../core/credits/meter.ts';
import { evidenceOf, observedSeconds, rebase } from '../../core/credits/meter.ts';
import type { TransferRecord } from '../../core/credits/transfer.ts';
import type { AttemptRecord } from '../../core/lifecycle/attempt.ts';

import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { pendingOperation } from '../../core/lifecycle/sandbox.ts';
import { isoTime, isoTimeOrNull } from '../../core/ports/clock.ts';
import type { Extension } from '../../core/ports/extension.ts';
import type { KeyRecord } from '../../core/tenancy/tenancy.ts';

/** Maps records (camelCase, milliseconds) to the wire (snake_case, ISO times): the only mapper. */
export class Presenter {
  readonly #base: string;

  constructor(publicUrl: string) {
    this.#base = publicUrl.replace(/\/+$/, '');
  }

  sandboxUrl(id: string): string {
    return `${this.#base}/v1/sandboxes/${id}`;
  }

  snapshotUrl(id: string): string {
    return `${this.#base}/v1/snapshots/${id}`;
  }

  sandbox(record: SandboxRecord, seen: { reused?: boolean; teardown?: AttemptRecord | null } = {}): Sandbox {
    const self = this.sandboxUrl(record.id);
    const exec = `${self}/exec`;
    const operation = pendingOperation(record);
    const { reachability, teardown } = { reachability: record.reachability, teardown: seen.teardown ?? null };
    return {
      sandbox_id: record.id,
      uid: record.uid,
      generation: record.generation,
      workspace_id: record.workspaceId,
      state: record.state,
      state_since: isoTime(record.stateSince),
      pause_kind: record.pauseKind,
      profile: record.profileId,
      profile_version: record.profileVersion,
      fingerprint: record.fingerprint,
      extension: record.extensionId,
      host: record.hostId,
      isolation: record.isolation,
      region: record.region,
      scope: record.scope,
      labels: record.labels,
      consumer: record.consumer,
      actor: record.actor,
      created_at: isoTime(record.createdAt),
      ready_at: isoTimeOrNull(record.readyAt),
      last_activity_at: isoTimeOrNull(record.lastActivityAt),
      expires_at: isoTime(record.deadlineAt),
      max_expires_at: isoTime(record.maxDeadlineAt),
      idle_reap_seconds: record.idleReapSeconds,
      reachability: reachability && { ...reachability, exec_url: reachability.exec_url ?? exec },
      exposed_secrets: [...record.exposedSecrets],
      elevated: record.elevated,
      inputs: record.inputs.map(({ name, uploadId, digest, origin }) => ({
        name,
        upload_id: uploadId,
        digest,
        source: origin.kind,
        git: origin.kind === 'git' ? { url: origin.url, ref: origin.ref, commit: origin.commit } : null,
      })),
      notes: [...record.notes],
      failure: record.failure && { ...record.failure, at: isoTime(record.failure.at) },
      teardown: teardown && {
        tries: teardown.teardownTries,
        stuck_since: isoTimeOrNull(teardown.stuckSince),
        last_error: teardown.teardownError,
      },
      operation: operation && { kind: operation.kind, since: isoTime(operation.requestedAt) },
      reused: seen.reused ?? false,
      links: { self, events: `${self}/events`, exec, route: `${self}/route`, setup: `${self}/setup` },
    };
  }

  extended({ sandbox, previousDeadlineAt, askedDeadlineAt }: Extended): ExtendedSandbox {
    return {
      ...this.sandbox(sandbox),
      extended: {
        previous_expires_at: isoTime(previousDeadlineAt),
        asked_expires_at: isoTime(askedDeadlineAt),
        limited: askedDeadlineAt > sandbox.maxDeadlineAt,
      },
    };
  }

  snapshot(record: SnapshotRecord): Snapshot {
    return {
      snapshot_id: record.id,
      workspace_id: record.workspaceId,
      name: record.name,
      sandbox_id: record.sandboxId,
      generation: record.generation,
      profile: record.profileId,
      profile_version: record.profileVersion,
      extension: record.extensionId,
      kind: record.kind,
      state: record.state,
      size_bytes: record.sizeBytes,
      cause: record.cause,
      digest: record.digest,
      labels: record.labels,
      created_at: isoTime(record.createdAt),
      expires_at: isoTimeOrNull(record.expiresAt),
      deleted_at: isoTimeOrNull(record.deletedAt),
    };
  }

  uploadUrl(id: string): string {
    return `${this.#base}/v1/uploads/${id}`;
  }

  upload(record: UploadRecord): Upload {
    return {
      upload_id: record.id,
      workspace_id: record.workspaceId,
      digest: record.digest,
      size_bytes: record.sizeBytes,
      entries: record.entries,
      created_at: isoTime(record.createdAt),
      expires_at: isoTime(record.expiresAt),
    };
  }

  setup({ recipe, logs }: SetupView): SetupLog {
    const items = logs.flatMap(({ generation, n, extensionId, steps }) =>
      steps.map((step) => ({
        generation,
        attempt: n,
        extension: extensionId,
        command: step.command,
        output: step.output,
        truncated: step.truncated,
        exit_code: step.exitCode,
        started_at: isoTime(step.startedAt),
        ended_at: isoTimeOrNull(step.endedAt),
      })),
    );
    return { instructions: recipe.instructions, instructions_ref: recipe.instructionsRef, items };
  }

  route({ documents, attempts }: RouteView): z.output<typeof RouteExplanation> {
    return {
      plan: documents.plan,
      attempts: attempts.map((attempt) => ({
        n: attempt.n,
        generation: attempt.generation,
        extension: attempt.extensionId,
        host: attempt.hostId,
        state: attempt.state,
        creation: attempt.creation,
        provider_key_id: attempt.providerKeyId,
        started_at: isoTime(attempt.startedAt),
        ended_at: isoTimeOrNull(attempt.endedAt),
        error: attempt.error && { ...attempt.error },
        hedges: attempt.hedges,
        outrun_by: attempt.outrunBy,
      })),
    };
  }

  meter(record: MeterRecord, sandbox: SandboxRecord, now: number): Meter {
    const open = record.closedAt === null;
    const { billedMs } = open ? rebase(record, now, record.rate) : record;
    return {
      meter_id: record.id,
      sandbox_id: sandbox.id,
      generation: record.generation,
      extension: record.extensionId,
      price_version: record.priceVersion,
      opened_at: isoTime(record.openedAt),
      closed_at: isoTimeOrNull(record.closedAt),
      billed_seconds: billedMs / 1000,
      charged_micro_usd: record.chargedMicroUsd,
      estimate_micro_usd: record.estimateMicroUsd,
      payer: record.payer,
      provider_key_id: record.providerKeyId,
      evidence: evidenceOf(record, billedMs),
      observed_seconds: observedSeconds(record, billedMs),
    };
  }

  balance(balance: WorkspaceBalance): z.output<typeof Balance> {
    return {
      workspace_id: balance.workspaceId,
      available_micro_usd: balance.availableMicroUsd,
      held_micro_usd: balance.heldMicroUsd,
      spent_micro_usd: balance.spentMicroUsd,
      purse: balance.purse,
      expiring_micro_usd: balance.expiringMicroUsd,
      expires_at: balance.expiresAt === null ? null : isoTime(balance.expiresAt),
    };
  }

  transfer(record: TransferRecord): z.output<typeof Transfer> {
    return {
      transfer_id: record.id,
      seq: record.seq,
      at: isoTime(record.at),
      kind: record.kind,
      debit: record.debit,
      credit: record.credit,
      amount_micro_usd: record.amountMicroUsd,
      hold_id: record.holdId,
      price_version: record.priceVersion,
      linked_to: record.linkedTo,
      reference: record.reference,
      hash: record.hash,
      sandbox_id: record.sandboxUid,
    };
  }

  key(record: KeyRecord): ApiKey {
    return {
      key_id: record.id,
      workspace_id: record.workspaceId,
      name: record.name,
      actor: record.actor,
      scopes: [...record.scopes],
      rotated_from: record.rotatedFrom,
      line: record.lines[0],
      made_by: record.lines[1] ?? null,
      created_at: isoTime(record.createdAt),
      expires_at: isoTimeOrNull(record.expiresAt),
      revoked_at: isoTimeOrNull(record.revokedAt),
      last_used_at: isoTimeOrNull(record.lastUsedAt),
    };
  }

  profile({ entry, unavailableReason }: ProfileView): z.output<typeof ProfileEntry> {
    return {
      profile: { ...entry.profile },
      source: entry.source,
      available: unavailableReason === null,
      unavailable_reason: unavailableReason,
      fingerprint: entry.fingerprint,
    };
  }

  extension({ header }: Extension, deps: ControlPorts): z.output<typeof ExtensionEntry> {
    const health = deps.extensions.health(header.id);
    return {
      id: header.id,
      title: header.title,
      enabled: true,
      handle_version: header.handleVersion,
      capabilities: header.capabilities,
      price: header.price,
      health,
      standing: deps.health.overall(header, health.status, deps.clock.now()),
    };
  }
}

export function presentVerdict(verdict: Verdict): z.output<typeof ProfileVerdict> {
  const { profile, published, unavailableReason } = verdict;
  return {
    valid: true,
    profile: { ...profile },
    published,
    available: unavailableReason === null,
    unavailable_reason: unavailableReason,
  };
}
