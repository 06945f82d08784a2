import type { AttemptJudgement, AttemptOutcome, AttemptRecord } from '../../core/attempt.ts';
import { isRunning } from '../../core/attempt.ts';
import type { CleanupReport, Handle, Ready } from '../../core/extension.ts';
import { outcomeOfError } from '../../core/health/attempt-outcome.ts';
import { isEstablished } from '../../core/lifecycle.ts';
import type { SandboxDocuments, SandboxOperation } from '../../core/sandbox.ts';
import { pendingOperation } from '../../core/sandbox.ts';
import type { SetupStep } from '../../core/setup-log.ts';
import type { Tx } from '../../core/store.ts';
import type { ControlDeps } from '../deps.ts';
import { noteUse } from '../money/measure-use.ts';
import { changeRate, insureAttempt, openMeter } from '../money/sandbox-money.ts';
import { backoffMs } from '../settings.ts';
import { snapshotEvent } from '../snapshots/snapshot-event.ts';
import { thinSnapshots } from '../snapshots/snapshot-room.ts';
import { failureDetails, failureOf } from './advance-sandbox.ts';
import type { BackendFailure } from './backend-error.ts';
import { recordedError, wrongParts } from './backend-error.ts';
import { isolateKey } from './isolate-key.ts';
import type { OperationOutcome } from './perform-step.ts';
import type { SandboxEdit } from './sandbox-edit.ts';
import { AUTOMATION } from './sandbox-edit.ts';

export interface SettleScope {
  readonly tx: Tx;
  readonly deps: ControlDeps;
  readonly edit: SandboxEdit;
  /** All attempts of the sandbox; `replaceAttempt` keeps it in step with the store. */
  readonly attempts: AttemptRecord[];
  /** Attempts that this settlement judged: the health of their backends learns of them after the commit. */
  readonly judged: AttemptRecord[];
}

export interface Verdict {
  /** Give up the lease and come back then, instead of going on at once. */
  readonly retryAt?: number;
}

/** How the outcome of one backend call is written. It runs inside the transaction that also decides the next step. */
export type Settlement = (scope: SettleScope) => Promise<Verdict>;

const GO_ON: Verdict = {};

function meterIdOf({ attemptId }: AttemptRecord): string {
  return `meter-${attemptId}`;
}

async function replaceAttempt(
  scope: SettleScope,
  attemptId: string,
  change: Partial<AttemptRecord>,
): Promise<AttemptRecord | null> {
  const index = scope.attempts.findIndex((attempt) => attempt.attemptId === attemptId);
  const current = scope.attempts[index];
  if (!current) return null;
  const next = { ...current, ...change };
  await scope.tx.attempts.update(next);
  scope.attempts[index] = next;
  return next;
}

function judgement(
  { deps, edit }: SettleScope,
  { attemptId, extensionId, judged }: AttemptRecord,
  outcome: AttemptOutcome,
): AttemptJudgement {
  return judged ?? deps.health.judge(attemptId, extensionId, outcome, edit.now);
}

/** Writes the attempt together with its judgement; an attempt is judged once. */
async function judgeAttempt(
  scope: SettleScope,
  attemptId: string,
  outcome: AttemptOutcome,
  change: Partial<AttemptRecord>,
): Promise<void> {
  const current = scope.attempts.find((attempt) => attempt.attemptId === attemptId);
  if (!current) return;
  const next = await replaceAttempt(scope, attemptId, {
    ...change,
    judged: judgement(scope, current, outcome),
  });
  if (next && current.judged === null) scope.judged.push(next);
}

function isOutrun({ attempts }: SettleScope, { attemptId }: AttemptRecord): boolean {
  return attempts.some((attempt) => attempt.attemptId === attemptId && attempt.outrunBy !== null);
}

/** The sandbox is ready on another attempt: this one is to be gone without a trace, at our expense. */
async function condemnOutrun(scope: SettleScope, winner: AttemptRecord): Promise<void> {
  for (const attempt of scope.attempts.filter(isRunning)) {
    await judgeAttempt(scope, attempt.attemptId, 'outrun', {
      state: 'condemned',
      outrunBy: winner.n,
      error: { code: 'SBX_CANCELLED', detail: `Attempt ${winner.n} was ready first.` },
      endedAt: scope.edit.now,
    });
  }
}

/** Two outcomes in one commit; the second has the say on what comes next. */
export function inTurn(first: Settlement, second: Settlement): Settlement {
  return async (scope) => {
    await first(scope);
    return second(scope);
  };
}

export function settleProvisioned(attempt: AttemptRecord, handle: Handle, at: number): Settlement {
  return async (scope) => {
    const wanted = scope.edit.row.state === 'provisioning';
    const made = { handle, provisionedAt: at, creation: 'created' } as const;
    if (wanted && !isOutrun(scope, attempt))
      await replaceAttempt(scope, attempt.attemptId, { ...made, state: 'provisioned' });
    else await judgeAttempt(scope, attempt.attemptId, 'caller', { ...made, state: 'condemned' });
    return GO_ON;
  };
}

export function settleAttemptFailed(attempt: AttemptRecord, failure: BackendFailure): Settlement {
  return async (scope) => {
    const { edit } = scope;
    const nothingLeft = failure.creation === 'not_created';
    await judgeAttempt(scope, attempt.attemptId, outcomeOfError(failure.code, attempt), {
      state: nothingLeft ? 'gone' : 'condemned',
      creation: failure.creation,
      // What was outrun was stopped by us: why is on record already.
      ...(!isOutrun(scope, attempt) && {
        error: recordedError(failure),
        endedAt: edit.now,
      }),
    });
    await isolateKey(scope.tx, scope.deps, attempt, failure, edit.row.workspaceId);
    if (edit.row.state === 'provisioning') {
      edit.note('sandbox.attempt_failed', AUTOMATION, {
        attempt: attempt.n,
        extension: attempt.extensionId,
        code: failure.code,
        detail: failure.detail,
        creation: failure.creation,
        ...wrongParts(failure.error.extras),
      });
    }
    return GO_ON;
  };
}

/** That this call created nothing says nothing of an earlier one, whose answer died with the process that made it. */
export function settleProvisionFailed(
  attempt: AttemptRecord,
  failure: BackendFailure,
  isFirstCall: boolean,
): Settlement {
  const ambiguous = failure.creation === 'not_created' && !isFirstCall;
  return settleAttemptFailed(attempt, ambiguous ? { ...failure, creation: 'maybe_created' } : failure);
}

export function settleReady(attempt: AttemptRecord, ready: Ready, documents: SandboxDocuments): Settlement {
  return async (scope) => {
    const { tx, deps, edit } = scope;
    const extension = deps.extensions.get(attempt.extensionId);
    if (isOutrun(scope, attempt)) return GO_ON;
    if (edit.row.state !== 'provisioning' || !extension) {
      await judgeAttempt(scope, attempt.attemptId, 'caller', { state: 'condemned' });
      return GO_ON;
    }
    await judgeAttempt(scope, attempt.attemptId, 'ready', { state: 'won', endedAt: edit.now });
    await condemnOutrun(scope, attempt);
    const meterId = meterIdOf(attempt);
    const chosen = documents.plan.candidates.find((candidate) => candidate.extension === attempt.extensionId);
    edit.patch({
      attempt: attempt.n,
      extensionId: attempt.extensionId,
      hostId: attempt.hostId,
      isolation: ready.isolation,
      handle: attempt.handle,
      reachability: ready.reachability,
      notes: ready.notes,
      readyAt: edit.now,
      meterId,
      failure: null,
    });
    await openMeter(tx, deps, {
      meterId,
      holdId: edit.row.holdId as string,
      sandbox: edit.row,
      plan: documents.plan,
      extension,
      attempt,
      earliestDeadlineAt: pendingOperation(edit.row)?.earliestDeadlineAt ?? null,
      estimateMicroUsd:
        chosen?.provider_key?.scope === 'workspace' ? 0 : (chosen?.quote?.max_charge_micro_usd ?? 0),
      at: edit.now,
    });
    edit.move('ready', AUTOMATION, {
      extension: attempt.extensionId,
      host: attempt.hostId,
      attempt: attempt.n,
    });
    return GO_ON;
  };
}

/** The same, with what the setup commands wrote. */
export function withSetup(
  { attemptId, sandboxUid, generation, n, extensionId }: AttemptRecord,
  steps: readonly SetupStep[],
  settlement: Settlement,
): Settlement {
  if (steps.length === 0) return settlement;
  return async (scope) => {
    const log = { attemptId, sandboxUid, generation, n, extensionId, steps: [...steps] };
    await scope.tx.attempts.putSetup(log);
    return settlement(scope);
  };
}

/** Gone is gone; anything else is tried again, told when it is stuck, and never forgotten. */
export function settleTeardown(
  attempt: AttemptRecord,
  report: CleanupReport | null,
  failure: BackendFailure | null,
): Settlement {
  return async (scope) => {
    const { tx, deps, edit } = scope;
    if (report?.gone) {
      if (report.used) await noteUse(tx, deps, meterIdOf(attempt), report.used);
      if (edit.row.attempt !== attempt.n || edit.row.generation !== attempt.generation)
        await insureAttempt(tx, deps, edit.row, attempt, edit.now);
      // Judged before, unless it was given up between two calls.
      await judgeAttempt(scope, attempt.attemptId, 'caller', {
        state: 'gone',
        endedAt: edit.now,
        teardownError: null,
      });
      return GO_ON;
    }
    if (failure) await isolateKey(tx, deps, attempt, failure, edit.row.workspaceId);
    const tries = attempt.teardownTries + 1;
    const left = report?.remaining.map(({ what, reason }) => `${what}: ${reason}`).join('; ');
    const why = failure?.detail ?? (left || 'The backend did not confirm that it is gone.');
    const nowStuck = attempt.stuckSince === null && tries >= deps.settings.stuckAfterTries;
    await replaceAttempt(scope, attempt.attemptId, {
      state: 'condemned',
      teardownTries: tries,
      teardownError: why,
      stuckSince: nowStuck ? edit.now : attempt.stuckSince,
    });
    if (nowStuck) {
      edit.note('sandbox.teardown_stuck', AUTOMATION, {
        extension: attempt.extensionId,
        attempt: attempt.n,
        tries,
        detail: why,
      });
    }
    // Whether something was created stays unknown: trying elsewhere could pay twice, so it fails instead.
    const isLast = !scope.attempts.some(isRunning);
    if (edit.row.state === 'provisioning' && isLast && tries >= deps.settings.ambiguousTries) {
      const tried = scope.attempts.filter((other) => other.generation === edit.row.generation);
      const cause = failureOf(tried, edit.now);
      edit.patch({ failure: cause });
      edit.move('failed', AUTOMATION, failureDetails(cause));
    }
    return { retryAt: edit.now + backoffMs(deps.settings, tries, deps.ids.random()) };
  };
}

/** Whether the operation is still wanted, or the sandbox has moved on. */
function stillPending(edit: SandboxEdit, operation: SandboxOperation): boolean {
  return pendingOperation(edit.row)?.id === operation.id && isEstablished(edit.row.state);
}

export function settleOperated(operation: SandboxOperation, outcome: OperationOutcome): Settlement {
  return async (scope) => {
    const { tx, deps, edit } = scope;
    if (!stillPending(edit, operation)) return GO_ON;
    const by = { actor: operation.actor };
    edit.patch({ operation: { ...operation, finishedAt: edit.now } });
    if (outcome.kind === 'pause' && edit.row.state !== 'paused') {
      edit.patch({ pauseKind: outcome.pauseKind });
      edit.move('paused', by, { pause_kind: outcome.pauseKind });
      await changeRate(tx, deps, edit.row, edit.now, true);
    }
    if (outcome.kind === 'resume' && edit.row.state === 'paused') {
      edit.patch({ lastActivityAt: edit.now });
      edit.move('active', by, { reason: 'resume' });
      await changeRate(tx, deps, edit.row, edit.now, false);
    }
    if (outcome.kind === 'snapshot') {
      const snapshot = await tx.snapshots.get(operation.snapshotId as string);
      if (snapshot?.state === 'creating') {
        const { ref, sizeBytes, digest = null } = outcome.taken;
        const next = {
          ...snapshot,
          state: 'available' as const,
          ref,
          sizeBytes,
          digest,
          eventSeq: snapshot.eventSeq + 1,
        };
        await tx.snapshots.update(next);
        const { cause } = next;
        await tx.events.append([
          snapshotEvent(deps, next, 'snapshot.available', operation.actor, edit.now, { cause }),
        ]);
        await thinSnapshots(tx, deps, next.workspaceId);
      }
    }
    return GO_ON;
  };
}

export function settleOperationFailed(operation: SandboxOperation, failure: BackendFailure): Settlement {
  return async (scope) => {
    const { tx, deps, edit } = scope;
    const current = scope.attempts.find(
      ({ generation, n }) => generation === edit.row.generation && n === edit.row.attempt,
    );
    await isolateKey(tx, deps, current, failure, edit.row.workspaceId);
    if (!stillPending(edit, operation)) return GO_ON;
    const tries = operation.tries + 1;
    if (failure.error.retryable && tries < deps.settings.operationTries) {
      edit.patch({ operation: { ...operation, tries } });
      return { retryAt: edit.now + backoffMs(deps.settings, tries - 1, deps.ids.random()) };
    }
    const error = { code: failure.code, detail: failure.detail, remedy: failure.error.remedy };
    edit.patch({ operation: { ...operation, tries, finishedAt: edit.now, error } });
    if (operation.snapshotId) {
      const snapshot = await tx.snapshots.get(operation.snapshotId);
      if (snapshot?.state === 'creating') {
        const next = { ...snapshot, state: 'deleting' as const, eventSeq: snapshot.eventSeq + 1 };
        await tx.snapshots.update(next);
        const details = { code: failure.code, reason: failure.detail };
        await tx.events.append([snapshotEvent(deps, next, 'snapshot.failed', 'atm', edit.now, details)]);
      }
    }
    return GO_ON;
  };
}
