import type { ErrorIssue } from '../../contract/errors/errors.ts';
import type { Fault } from '../../contract/errors/fault.ts';
import type { Creation } from '../../contract/values/state.ts';
import type { Handle } from '../ports/extension.ts';

/**
 * `journalled` before the backend is called → `provisioned` when its handle is known → `won` when the sandbox is
 * ready on it. `condemned` when it must be torn down, `gone` when the backend confirmed that nothing is left.
 */
export type AttemptState = 'journalled' | 'provisioned' | 'won' | 'condemned' | 'gone';

/** How an attempt ended, for the health of its backend: ready, overtaken by another attempt, or whose fault it was. */
export type AttemptOutcome = 'ready' | 'outrun' | Fault;

/** The result of one attempt for the health of its backend. It is written in the commit that ends the attempt. */
export interface AttemptJudgement {
  /** The time of the judgement: later than every earlier one of the same process, so that a restart reads them in their order. */
  readonly at: number;
  readonly outcome: AttemptOutcome;
  /** Attempts of this backend that ran when this one started, this one included. */
  readonly load: number;
  /** How long the request's own inputs and setup took, once the backend had done its part. */
  readonly ownMs: number;
}

/** Returns how long the backend itself took over an attempt: the time of the tenant's own programs does not count for others. */
export function backendMs(startedAt: number, { at, ownMs }: AttemptJudgement): number {
  return Math.max(0, at - startedAt - ownMs);
}

export interface AttemptError {
  readonly code: string;
  readonly detail: string;
  readonly remedy?: string;
  readonly field?: string;
  readonly issues?: ErrorIssue[];
}

export interface AttemptRecord {
  /** Stamped on the backend object; derives from sandbox, generation and number alone. */
  readonly attemptId: string;
  readonly sandboxUid: string;
  readonly generation: number;
  readonly n: number;
  readonly extensionId: string;
  readonly hostId: string | null;
  /** The resources that the attempt takes of its host until it is gone. */
  readonly reserved: { readonly millicpu: number; readonly memoryMb: number };
  readonly state: AttemptState;
  readonly handle: Handle | null;
  readonly creation: Creation | null;
  readonly error: AttemptError | null;
  readonly startedAt: number;
  readonly provisionedAt: number | null;
  readonly endedAt: number | null;
  /** `null` while the attempt runs. */
  readonly judged: AttemptJudgement | null;
  readonly teardownTries: number;
  readonly teardownError: string | null;
  /** When teardown was first found to be stuck, and reported. */
  readonly stuckSince: number | null;
  /** The vendor's key that it is made, used and ended with; `null` for the backend's own configuration. */
  readonly providerKeyId: string | null;
  /** When a second attempt is to be started next to this one, unless it is ready by then. */
  readonly hedgeAt: number | null;
  /** The number of the attempt that it was started next to. */
  readonly hedges: number | null;
  /** The number of the attempt that was ready before it. */
  readonly outrunBy: number | null;
}

/** Whether the attempt may still become the sandbox. */
export function isRunning({ state }: AttemptRecord): boolean {
  return state === 'journalled' || state === 'provisioned';
}

export function attemptIdOf(sandboxUid: string, generation: number, n: number): string {
  return `${sandboxUid}-g${generation}-a${n}`;
}
