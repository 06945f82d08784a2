import type { AttemptRecord } from './attempt.ts';
import { isRunning } from './attempt.ts';
import type { SandboxOperation, SandboxRecord } from './sandbox.ts';
import { pendingOperation } from './sandbox.ts';

/** A next step that is database work alone: it is taken at once, by itself. */
export type StoreStep =
  | { readonly kind: 'begin' }
  | { readonly kind: 'try-next' }
  | { readonly kind: 'start-hedge'; readonly attempt: AttemptRecord }
  | { readonly kind: 'start-teardown' }
  | { readonly kind: 'finish-teardown' };

/** A step that takes time: a call to a backend, or waiting for the moment to start another attempt. */
export type WaitingStep =
  | { readonly kind: 'provision'; readonly attempt: AttemptRecord }
  | { readonly kind: 'probe'; readonly attempt: AttemptRecord }
  | { readonly kind: 'hedge'; readonly attempt: AttemptRecord; readonly at: number }
  | { readonly kind: 'teardown'; readonly attempt: AttemptRecord }
  | { readonly kind: 'operate'; readonly operation: SandboxOperation };

export type NextSteps = StoreStep | readonly WaitingStep[];

const REST: readonly WaitingStep[] = [];

/**
 * Returns one step of database work, or all that can be done at the same time: no two of those are about the same attempt.
 * Level-triggered: it looks only at what is stored, so it gives the same answer after a crash as before it. While provisioning,
 * nothing new is tried until what was tried before is confirmed gone, unless it was planned as a hedge.
 */
export function nextSteps(
  sandbox: SandboxRecord,
  attempts: readonly AttemptRecord[],
  now: number,
): NextSteps {
  const condemned = attempts.filter((attempt) => attempt.state === 'condemned').map(teardown);
  switch (sandbox.state) {
    case 'requested':
      return { kind: 'begin' };
    case 'provisioning': {
      const running = attempts.filter(isRunning);
      if (running.length === 0 && condemned.length === 0) return { kind: 'try-next' };
      const hedged = condemned.length === 0 ? hedgedBy(running) : null;
      if (hedged !== null && hedged.at <= now) return { kind: 'start-hedge', attempt: hedged.attempt };
      return [...running.map(towardsReady), ...(hedged ? [hedged] : []), ...condemned];
    }
    case 'ready':
    case 'active':
    case 'paused': {
      const operation = pendingOperation(sandbox);
      return operation ? [{ kind: 'operate', operation }, ...condemned] : condemned;
    }
    case 'expired':
      return { kind: 'start-teardown' };
    case 'failed':
      return condemned;
    case 'destroying': {
      const left = attempts.filter((attempt) => attempt.state !== 'gone');
      return left.length > 0 ? left.map(teardown) : { kind: 'finish-teardown' };
    }
    case 'destroyed':
      return REST;
  }
}

function teardown(attempt: AttemptRecord): WaitingStep {
  return { kind: 'teardown', attempt };
}

function towardsReady(attempt: AttemptRecord): WaitingStep {
  return { kind: attempt.state === 'journalled' ? 'provision' : 'probe', attempt };
}

/**
 * Returns the hedge of an attempt that runs alone: two attempts are a race already, and one that is being removed may have been
 * paid for.
 */
function hedgedBy(running: readonly AttemptRecord[]): Extract<WaitingStep, { kind: 'hedge' }> | null {
  const [only, ...others] = running;
  if (!only || only.hedgeAt === null || others.length > 0) return null;
  return { kind: 'hedge', attempt: only, at: only.hedgeAt };
}
