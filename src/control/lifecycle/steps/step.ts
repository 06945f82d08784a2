import type { AttemptRecord } from '../../../core/lifecycle/attempt.ts';
import type { SandboxDocuments, SandboxRecord } from '../../../core/lifecycle/sandbox.ts';
import type { Stamp } from '../../../core/ports/extension.ts';
import type { ControlPorts } from '../../ports/control-ports.ts';
import type { SettleScope } from '../edit/attempt-edit.ts';

/** The driver's next move after the outcome of a step was written. */
export interface Verdict {
  /** The time to take the same step again; without it the driver goes on at once. */
  readonly retryAt?: number;
}

export const GO_ON: Verdict = {};

/**
 * A call to a backend, with the functions that write its outcome or its error.
 *
 * The driver journals the attempt before it makes the step. It then awaits `call` under a time limit while it keeps the
 * lease. When the call ends, the driver opens one transaction and runs `settle` with the outcome, or `fail` with the
 * error; the next steps are decided in the same transaction. A transaction may run twice: `settle` and `fail` change
 * nothing but what their scope holds. When the lease is lost neither runs, and recovery finds what the call left.
 */
export interface Step<Outcome> {
  /** Names the transaction that writes the outcome. */
  readonly label: string;
  /** The time limit of the call; `null` for a wait that calls no backend, whose interruption has no outcome. */
  readonly timeoutMs: number | null;
  call(signal: AbortSignal): Promise<Outcome>;
  settle(scope: SettleScope, outcome: Outcome): Promise<Verdict>;
  fail(scope: SettleScope, error: unknown): Promise<Verdict>;
}

/** The sandbox that a step is about, as the driver last wrote it, with the documents of its generation. */
export interface StepSubject {
  readonly sandbox: SandboxRecord;
  readonly documents: SandboxDocuments;
}

export function stampOf(deps: ControlPorts, attempt: AttemptRecord): Stamp {
  return { sandboxUid: attempt.sandboxUid, attemptId: attempt.attemptId, owner: deps.owner };
}

/** Returns how long the backend of an attempt may take to provision, and again to become reachable. */
export function provisionTimeoutMs(deps: ControlPorts, { extensionId }: AttemptRecord): number {
  return (deps.extensions.get(extensionId)?.header.provisionTimeoutSeconds ?? 60) * 1000;
}

export function meterIdOf({ attemptId }: AttemptRecord): string {
  return `meter-${attemptId}`;
}
