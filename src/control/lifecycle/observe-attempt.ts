import type { AttemptRecord } from '../../core/attempt.ts';
import type { AttemptKey } from '../../core/health/health-book.ts';
import { recipeClass } from '../../core/health/health-book.ts';
import type { SandboxDocuments } from '../../core/sandbox.ts';
import type { ControlDeps } from '../deps.ts';

function keyOf(attempt: AttemptRecord, { recipe }: SandboxDocuments): AttemptKey {
  const { attemptId, extensionId, hostId } = attempt;
  return { attemptId, extensionId, hostId, recipeClass: recipeClass(recipe) };
}

export function attemptStarted(deps: ControlDeps, attempt: AttemptRecord, documents: SandboxDocuments): void {
  deps.health.started(keyOf(attempt, documents), attempt.startedAt);
}

/** Called after the commit that judged them: `learnFromAttempts` reads the same rows after a restart. */
export function attemptsJudged(
  { health }: ControlDeps,
  attempts: readonly AttemptRecord[],
  documents: SandboxDocuments,
): void {
  for (const attempt of attempts) {
    const { judged, startedAt } = attempt;
    if (judged !== null) health.ended(keyOf(attempt, documents), judged, judged.at - startedAt);
  }
}
