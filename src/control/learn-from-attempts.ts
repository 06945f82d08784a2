import { outcomeOf } from '../core/health/health-book.ts';
import type { ControlDeps } from './deps.ts';

const MOST_ATTEMPTS = 500;

/** After a start, what earlier processes learned is learned again from the attempts they journalled. */
export async function learnFromAttempts(deps: ControlDeps): Promise<void> {
  const recent = await deps.store.read('recent-attempts', (tx) => tx.attempts.recent(MOST_ATTEMPTS));
  for (const attempt of [...recent].reverse()) {
    const { attemptId, extensionId, startedAt, endedAt, state, error } = attempt;
    if (endedAt === null || (state !== 'won' && error === null)) continue;
    const key = { attemptId, extensionId, recipeClass: 'any' };
    deps.health.started(key, startedAt);
    if (attempt.hedges !== null) deps.health.hedges.take(deps.settings.hedgeShare);
    deps.health.ended(key, error === null ? 'ready' : outcomeOf(error.code), endedAt - startedAt, endedAt);
  }
}
