import type { AttemptRecord } from '../../core/lifecycle/attempt.ts';
import type { SandboxDocuments } from '../../core/lifecycle/sandbox.ts';
import type { EditScope } from './edit/attempt-edit.ts';
import { replaceAttempt } from './edit/attempt-edit.ts';
import { journalNext } from './edit/journal-attempt.ts';
import { AUTOMATION } from './edit/sandbox-edit.ts';

/**
 * Journals a second attempt beside a first one that is slow, unless its backend is strained or too many attempts are second ones
 * already. The decision is made once for an attempt, whatever its result.
 */
export async function startHedge(
  scope: EditScope,
  first: AttemptRecord,
  documents: SandboxDocuments,
): Promise<void> {
  const { deps, edit } = scope;
  await replaceAttempt(scope, first.attemptId, { hedgeAt: null });
  const backup = documents.plan.hedge?.extension ?? undefined;
  const extension = backup === undefined ? undefined : deps.extensions.get(backup);
  if (!extension || deps.health.isStrained(extension.header.id, edit.now)) return;
  if (!deps.health.hedges.take(deps.settings.hedgeShare)) return;
  const second = await journalNext(scope, documents, { hedges: first.n });
  if (!second) return;
  edit.note('sandbox.hedged', AUTOMATION, {
    attempt: second.n,
    extension: second.extensionId,
    host: second.hostId,
    next_to: first.n,
    waited_ms: edit.now - first.startedAt,
  });
}
