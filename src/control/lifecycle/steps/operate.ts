import { SandboxerError } from '../../../contract/errors/errors.ts';
import { offerIn } from '../../../core/credits/terms.ts';
import { isEstablished } from '../../../core/lifecycle/lifecycle.ts';
import type { SandboxOperation } from '../../../core/lifecycle/sandbox.ts';
import { pendingOperation } from '../../../core/lifecycle/sandbox.ts';
import type { Extension, Handle, TakenSnapshot } from '../../../core/ports/extension.ts';
import { contextOf, extensionOf } from '../../backends/backend-context.ts';
import { backendEndsAt, changeRate } from '../../money/sandbox-money.ts';
import type { ControlPorts } from '../../ports/control-ports.ts';
import { backoffMs } from '../../ports/settings.ts';
import { snapshotEvent } from '../../snapshots/snapshot-event.ts';
import { thinSnapshots } from '../../snapshots/snapshot-room.ts';
import type { SettleScope } from '../edit/attempt-edit.ts';
import { backendFailure } from '../edit/backend-error.ts';
import { isolateKey } from '../edit/isolate-key.ts';
import type { SandboxEdit } from '../edit/sandbox-edit.ts';
import type { Step, StepSubject } from './step.ts';
import { GO_ON } from './step.ts';
import { secretsOf } from './step-secrets.ts';

export type Operated =
  | { readonly kind: 'pause'; readonly pauseKind: 'frozen' | 'stopped' }
  | { readonly kind: 'resume' | 'extend' }
  | { readonly kind: 'snapshot'; readonly taken: TakenSnapshot };

/**
 * Carries out the pending operation of a living sandbox: pause, resume, extend or snapshot. One operation at a time is pending.
 */
export function operateStep(
  deps: ControlPorts,
  subject: StepSubject,
  operation: SandboxOperation,
): Step<Operated> {
  return {
    label: operation.kind,
    timeoutMs: deps.settings.operationTimeoutMs,
    call: (signal) => callOperation(deps, subject, operation, signal),
    async settle(scope, outcome) {
      const { edit } = scope;
      if (!isStillPending(edit, operation)) return GO_ON;
      edit.patch({ operation: { ...operation, finishedAt: edit.now } });
      await applyOperation(scope, operation, outcome);
      return GO_ON;
    },
    async fail(scope, error) {
      const { tx, edit } = scope;
      const failure = backendFailure(error, subject.sandbox.extensionId as string);
      const attempt = scope.attempts.find(
        ({ generation, n }) => generation === edit.row.generation && n === edit.row.attempt,
      );
      await isolateKey(tx, deps, { attempt, failure, workspaceId: edit.row.workspaceId });
      if (!isStillPending(edit, operation)) return GO_ON;
      const tries = operation.tries + 1;
      if (failure.error.retryable && tries < deps.settings.operationTries) {
        edit.patch({ operation: { ...operation, tries } });
        return { retryAt: edit.now + backoffMs(deps.settings, tries - 1, deps.ids.random()) };
      }
      const ended = { code: failure.code, detail: failure.detail, remedy: failure.error.remedy };
      edit.patch({ operation: { ...operation, tries, finishedAt: edit.now, error: ended } });
      if (operation.snapshotId) await failSnapshot(scope, operation.snapshotId, ended);
      return GO_ON;
    },
  };
}

/** Whether the operation is still wanted, or the sandbox has moved on. */
function isStillPending(edit: SandboxEdit, operation: SandboxOperation): boolean {
  return pendingOperation(edit.row)?.id === operation.id && isEstablished(edit.row.state);
}

function unsupported({ header: { id } }: Extension, { kind }: SandboxOperation): SandboxerError {
  return new SandboxerError('SBX_UNSUPPORTED', `${id} cannot ${kind}.`, { backend: id });
}

async function callOperation(
  deps: ControlPorts,
  subject: StepSubject,
  operation: SandboxOperation,
  signal: AbortSignal,
): Promise<Operated> {
  const { sandbox, documents } = subject;
  const extension = extensionOf(deps, sandbox.extensionId as string);
  const context = await contextOf(deps, sandbox, signal);
  const handle = sandbox.handle as Handle;
  switch (operation.kind) {
    case 'pause':
      if (!extension.pause) throw unsupported(extension, operation);
      return { kind: 'pause', pauseKind: await extension.pause(handle, context) };
    case 'resume': {
      if (!extension.resume) throw unsupported(extension, operation);
      const isStopped = sandbox.pauseKind === 'stopped';
      const secrets = isStopped ? await secretsOf(deps, subject, extension, signal) : [];
      await extension.resume(handle, context, secrets);
      return { kind: 'resume' };
    }
    case 'extend': {
      // The end of what is paid for in stretches moves with each of them.
      if (!offerIn(documents.plan, extension).leased) {
        const endsAt = backendEndsAt(deps, sandbox, extension, documents.plan);
        await extension.extendLife?.(handle, endsAt, context);
      }
      return { kind: 'extend' };
    }
    case 'snapshot': {
      if (!extension.snapshot) throw unsupported(extension, operation);
      const spec = { snapshotId: operation.snapshotId as string, name: null, owner: deps.owner };
      return { kind: 'snapshot', taken: await extension.snapshot(handle, spec, context) };
    }
  }
}

async function applyOperation(
  scope: SettleScope,
  operation: SandboxOperation,
  outcome: Operated,
): Promise<void> {
  const { tx, deps, edit } = scope;
  const by = { actor: operation.actor };
  if (outcome.kind === 'pause' && edit.row.state !== 'paused') {
    edit.patch({ pauseKind: outcome.pauseKind });
    edit.move('paused', by, { pause_kind: outcome.pauseKind });
    await changeRate({ tx, deps, at: edit.now }, edit.row, true);
  }
  if (outcome.kind === 'resume' && edit.row.state === 'paused') {
    edit.patch({ lastActivityAt: edit.now });
    edit.move('active', by, { reason: 'resume' });
    await changeRate({ tx, deps, at: edit.now }, edit.row, false);
  }
  if (outcome.kind === 'snapshot') await keepSnapshot(scope, operation, outcome.taken);
}

async function keepSnapshot(
  { tx, deps, edit }: SettleScope,
  { snapshotId, actor }: SandboxOperation,
  { ref, sizeBytes, digest = null }: TakenSnapshot,
): Promise<void> {
  const snapshot = await tx.snapshots.get(snapshotId as string);
  if (snapshot?.state !== 'creating') return;
  const eventSeq = snapshot.eventSeq + 1;
  const next = { ...snapshot, state: 'available' as const, ref, sizeBytes, digest, eventSeq };
  await tx.snapshots.update(next);
  const { cause } = next;
  await tx.events.append([
    snapshotEvent(deps, next, { type: 'snapshot.available', actor, now: edit.now, details: { cause } }),
  ]);
  await thinSnapshots(tx, deps, next.workspaceId);
}

async function failSnapshot(
  { tx, deps, edit }: SettleScope,
  snapshotId: string,
  { code, detail }: { readonly code: string; readonly detail: string },
): Promise<void> {
  const snapshot = await tx.snapshots.get(snapshotId);
  if (snapshot?.state !== 'creating') return;
  const next = { ...snapshot, state: 'deleting' as const, eventSeq: snapshot.eventSeq + 1 };
  await tx.snapshots.update(next);
  const details = { code, reason: detail };
  await tx.events.append([
    snapshotEvent(deps, next, { type: 'snapshot.failed', actor: 'atm', now: edit.now, details }),
  ]);
}
