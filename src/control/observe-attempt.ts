import { SandboxerError } from '../contract/errors.ts';
import type { AttemptRecord } from '../core/attempt.ts';
import type { AttemptKey } from '../core/health/health-book.ts';
import { outcomeOf, recipeClass } from '../core/health/health-book.ts';
import type { SandboxDocuments } from '../core/sandbox.ts';
import type { ControlDeps } from './deps.ts';
import { Interrupted, Outrun } from './run-step.ts';

function keyOf(attempt: AttemptRecord, { recipe }: SandboxDocuments): AttemptKey {
  const { attemptId, extensionId, hostId } = attempt;
  return { attemptId, extensionId, hostId, recipeClass: recipeClass(recipe) };
}

/** Tells the health book how attempts go. What it knows is a guess for the next decision, so nothing here is durable. */
export function attemptStarted(deps: ControlDeps, attempt: AttemptRecord, documents: SandboxDocuments): void {
  deps.health.started(keyOf(attempt, documents), attempt.startedAt);
}

export function attemptReady(deps: ControlDeps, attempt: AttemptRecord, documents: SandboxDocuments): void {
  const now = deps.clock.now();
  deps.health.ended(keyOf(attempt, documents), 'ready', now - attempt.startedAt, now);
}

export function attemptFailed(
  deps: ControlDeps,
  attempt: AttemptRecord,
  documents: SandboxDocuments,
  error: unknown,
): void {
  const now = deps.clock.now();
  const wasOurs = error instanceof Interrupted || error instanceof Outrun;
  const code = error instanceof SandboxerError ? error.code : 'SBX_EXTENSION_FAILED';
  const ours = error instanceof Outrun ? 'outrun' : 'not_its_fault';
  // A key of its own is isolated by itself: that says nothing of the backend under other keys.
  const wasKey = code === 'SBX_BACKEND_AUTH' && attempt.providerKeyId !== null;
  const outcome = wasOurs || wasKey ? ours : outcomeOf(code);
  deps.health.ended(keyOf(attempt, documents), outcome, now - attempt.startedAt, now);
}
