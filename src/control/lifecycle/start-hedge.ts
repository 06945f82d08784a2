import type { AttemptRecord } from '../../core/attempt.ts';
import type { SandboxDocuments } from '../../core/sandbox.ts';
import type { Tx } from '../../core/store.ts';
import type { ControlDeps } from '../deps.ts';
import { journalNext } from './journal-attempt.ts';
import type { SandboxEdit } from './sandbox-edit.ts';
import { AUTOMATION } from './sandbox-edit.ts';

/**
 * The moment that was planned has come and the first attempt is still not ready: a second one is put on record, if that
 * is still a good idea. Whatever comes of it, it is decided once.
 */
export async function startHedge(
  tx: Tx,
  deps: ControlDeps,
  edit: SandboxEdit,
  attempts: AttemptRecord[],
  first: AttemptRecord,
  documents: SandboxDocuments,
): Promise<void> {
  const index = attempts.indexOf(first);
  attempts[index] = { ...first, hedgeAt: null };
  await tx.attempts.update(attempts[index]);
  const backup = documents.plan.hedge?.extension ?? undefined;
  const extension = backup === undefined ? undefined : deps.extensions.get(backup);
  if (!extension || deps.health.isStrained(extension.header.id, edit.now)) return;
  if (!deps.health.hedges.take(deps.settings.hedgeShare)) return;
  const second = await journalNext(tx, edit, attempts, documents, { hedges: first.n });
  if (!second) return;
  edit.note('sandbox.hedged', AUTOMATION, {
    attempt: second.n,
    extension: second.extensionId,
    host: second.hostId,
    next_to: first.n,
    waited_ms: edit.now - first.startedAt,
  });
}
