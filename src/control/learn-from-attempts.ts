import type { AttemptRecord } from '../core/attempt.ts';
import { outcomeOf, recipeClass } from '../core/health/health-book.ts';
import type { Tx } from '../core/store.ts';
import type { ControlDeps } from './deps.ts';

const MOST_ATTEMPTS = 500;

interface Past {
  readonly attempt: AttemptRecord;
  readonly recipeClass: string;
}

async function past(tx: Tx, attempt: AttemptRecord): Promise<Past> {
  const documents = await tx.sandboxes.documents(attempt.sandboxUid, attempt.generation);
  return { attempt, recipeClass: documents ? recipeClass(documents.recipe) : 'any' };
}

/** After a start, what earlier processes learned is learned again from the attempts they journalled. */
export async function learnFromAttempts({ store, health, settings }: ControlDeps): Promise<void> {
  const recent = await store.read('recent-attempts', async (tx) => {
    const found: Past[] = [];
    for (const attempt of await tx.attempts.recent(MOST_ATTEMPTS)) found.push(await past(tx, attempt));
    return found;
  });
  for (const { attempt, recipeClass: kind } of recent.reverse()) {
    const { attemptId, extensionId, hostId, startedAt, endedAt, state, error } = attempt;
    if (endedAt === null || (state !== 'won' && error === null)) continue;
    const key = { attemptId, extensionId, hostId, recipeClass: kind };
    health.started(key, startedAt);
    if (attempt.hedges !== null) health.hedges.take(settings.hedgeShare);
    const failed = attempt.outrunBy === null ? outcomeOf(error?.code ?? '') : 'outrun';
    health.ended(key, error === null ? 'ready' : failed, endedAt - startedAt, endedAt);
  }
}
