import type { ErrorCode } from '../../contract/errors/errors.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Actor } from '../../contract/values/state.ts';
import type { SandboxOperation, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { pendingOperation } from '../../core/lifecycle/sandbox.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { firstWithin, waitForSandbox } from './wait-for-sandbox.ts';

interface NewOperation {
  readonly kind: SandboxOperation['kind'];
  readonly actor: Actor;
  readonly now: number;
  readonly snapshotId?: string | null;
}

export function newOperation(
  deps: ControlPorts,
  { kind, actor, now, snapshotId = null }: NewOperation,
): SandboxOperation {
  return {
    kind,
    id: deps.ids.next('op'),
    requestedAt: now,
    actor,
    snapshotId,
    tries: 0,
    finishedAt: null,
    error: null,
  };
}

/** Refuses a second operation while one is pending: its meaning depends on how the first ends. */
export function requireNoOperation(sandbox: SandboxRecord): void {
  const pending = pendingOperation(sandbox);
  if (!pending) return;
  throw new SandboxerError('SBX_CONFLICT', `The sandbox is busy with ${pending.kind}.`, {
    remedy: 'Wait until it is done and repeat the request.',
  });
}

/** Refuses to give more time to a sandbox past its deadline: it is about to be ended, even before a sweep has found it. */
export function requireBeforeDeadline({ id, deadlineAt }: SandboxRecord, now: number): void {
  if (now < deadlineAt) return;
  throw new SandboxerError(
    'SBX_INVALID_STATE',
    `The deadline of the sandbox "${id}" passed at ${isoTime(deadlineAt)}.`,
    { remedy: 'Create another sandbox, and extend it before its `expires_at`.' },
  );
}

/**
 * Waits until the operation is carried out and returns the row, or throws why it failed. `driven` is the row as this process's
 * own work on it leaves it, which saves a read.
 */
export async function awaitOperation(
  deps: ControlPorts,
  sandbox: SandboxRecord,
  operationId: string,
  driven: Promise<SandboxRecord | null>,
): Promise<SandboxRecord> {
  const over = (row: SandboxRecord) => row.operation?.id !== operationId || row.operation.finishedAt !== null;
  const endsAt = deps.clock.now() + deps.settings.waitMs;
  const reached = await firstWithin(deps, driven, deps.settings.waitMs);
  const row =
    reached && over(reached)
      ? reached
      : await waitForSandbox(deps, sandbox.uid, over, { timeoutMs: endsAt - deps.clock.now() });
  if (!row || !over(row)) throw new SandboxerError('SBX_TIMEOUT', 'The backend is still at it.');
  const error = row.operation?.id === operationId ? row.operation.error : null;
  if (error) {
    throw new SandboxerError(error.code as ErrorCode, error.detail, {
      ...(row.extensionId !== null && { backend: row.extensionId }),
      ...(error.remedy !== undefined && { remedy: error.remedy }),
    });
  }
  return row;
}
