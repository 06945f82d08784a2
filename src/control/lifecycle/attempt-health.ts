import type { AttemptKey } from '../../core/health/health-book.ts';
import { recipeClass } from '../../core/health/health-book.ts';
import type { HostRecord, HostSample } from '../../core/hosts/host.ts';
import { bookedHost } from '../../core/hosts/host.ts';
import type { AttemptRecord } from '../../core/lifecycle/attempt.ts';
import { backendMs, isRunning } from '../../core/lifecycle/attempt.ts';
import type { SandboxDocuments } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

/** The number of rows read for each backend on each host: more than the health book remembers of one. */
const MOST_ATTEMPTS = 500;
const MOST_CANARIES = 200;

interface Happening {
  readonly at: number;
  tell(): void;
}

function keyOf(
  { attemptId, extensionId, hostId }: AttemptRecord,
  documents: SandboxDocuments | null,
): AttemptKey {
  return { attemptId, extensionId, hostId, recipeClass: documents ? recipeClass(documents.recipe) : 'any' };
}

/** Tells the health book that an attempt begins. */
export function attemptStarted(
  deps: ControlPorts,
  attempt: AttemptRecord,
  documents: SandboxDocuments,
): void {
  deps.health.started(keyOf(attempt, documents), attempt.startedAt);
}

/** Tells the health book of attempts after the commit that judged them. */
export function attemptsJudged(
  { health }: ControlPorts,
  attempts: readonly AttemptRecord[],
  documents: SandboxDocuments,
): void {
  for (const attempt of attempts) {
    const { judged, startedAt } = attempt;
    if (judged !== null) health.ended(keyOf(attempt, documents), judged, backendMs(startedAt, judged));
  }
}

async function storedKeyOf(tx: Tx, attempt: AttemptRecord): Promise<AttemptKey> {
  return keyOf(attempt, await tx.sandboxes.documents(attempt.sandboxUid, attempt.generation));
}

function attemptHappenings(
  { health, settings }: ControlPorts,
  attempt: AttemptRecord,
  key: AttemptKey,
): Happening[] {
  const { judged, startedAt } = attempt;
  if (judged === null && !isRunning(attempt)) return [];
  const start = {
    at: startedAt,
    tell: () => {
      health.started(key, startedAt);
      if (attempt.hedges !== null) health.hedges.take(settings.hedgeShare);
    },
  };
  if (judged === null) return [start];
  return [start, { at: judged.at, tell: () => health.ended(key, judged, backendMs(startedAt, judged)) }];
}

function canaryHappening({ health }: ControlPorts, host: HostRecord, sample: HostSample): Happening {
  const { extension, ok } = sample.data;
  const place = { extensionId: String(extension), hostId: bookedHost(host) };
  return { at: sample.at, tell: () => health.probed(place, ok === true, sample.at) };
}

/**
 * Feeds the health book with the judgements of earlier processes: attempts and canaries from their rows, in the order in which
 * they were judged. The health after a restart is the health before it.
 */
export async function learnFromAttempts(deps: ControlPorts): Promise<void> {
  const happenings = await deps.store.read('recent-attempts', async (tx) => {
    const found: Happening[] = [];
    for (const attempt of await tx.attempts.recent(MOST_ATTEMPTS))
      found.push(...attemptHappenings(deps, attempt, await storedKeyOf(tx, attempt)));
    for (const host of await tx.hosts.list())
      for (const sample of await tx.hosts.samples(host.id, 'canary', MOST_CANARIES))
        found.push(canaryHappening(deps, host, sample));
    return found;
  });
  for (const { tell } of happenings.sort((a, b) => a.at - b.at)) tell();
}
