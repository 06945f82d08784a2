import type { AttemptRecord } from '../../core/lifecycle/attempt.ts';
import type { WaitingStep } from '../../core/lifecycle/next-step.ts';
import { nextSteps } from '../../core/lifecycle/next-step.ts';
import type { SandboxDocuments } from '../../core/lifecycle/sandbox.ts';
import type { EditScope } from './edit/attempt-edit.ts';
import { errorOfRequest, failSandbox } from './edit/attempt-failure.ts';
import { journalNext } from './edit/journal-attempt.ts';
import type { SandboxEdit } from './edit/sandbox-edit.ts';
import { AUTOMATION } from './edit/sandbox-edit.ts';
import { startHedge } from './start-hedge.ts';

/** The steps that take time. */
export type BackendStep =
  | Exclude<WaitingStep, { kind: 'provision' }>
  | {
      readonly kind: 'provision';
      readonly attempt: AttemptRecord;
      /**
       * Whether the attempt was journalled in this very commit. If not, its backend was called before, with an unknown outcome.
       */
      readonly isFirstCall: boolean;
    };

/** Journals an attempt at the next backend of the plan, or fails the sandbox when none is left. */
async function tryNext(scope: EditScope, documents: SandboxDocuments): Promise<void> {
  const { edit, attempts } = scope;
  const tried = attempts.filter((attempt) => attempt.generation === edit.row.generation);
  const afterMs = documents.plan.hedge?.after_ms ?? null;
  const hedgeAt = tried.length === 0 && afterMs !== null ? edit.now + afterMs : null;
  // The request's own fault: no other backend is tried with it.
  const isHopeless = errorOfRequest(tried) !== null;
  if (!isHopeless && (await journalNext(scope, documents, { hedgeAt }))) return;
  failSandbox(edit, tried);
}

function startNextGeneration(edit: SandboxEdit, documents: SandboxDocuments): void {
  const { recipe } = documents;
  edit.patch({
    generation: edit.row.generation + 1,
    recreating: false,
    attempt: null,
    extensionId: null,
    hostId: null,
    isolation: null,
    region: null,
    handle: null,
    reachability: null,
    notes: [],
    failure: null,
    readyAt: null,
    lastActivityAt: null,
    meterId: null,
    deadlineAt: edit.now + recipe.ttlSeconds * 1000,
    maxDeadlineAt: edit.now + recipe.maxTtlSeconds * 1000,
  });
  edit.move('requested', AUTOMATION, { reason: 'recreate' });
}

/**
 * Takes every step that is database work alone, in the caller's transaction, and returns those that then take time.
 * `documentsOf` reads the recipe and plan of a generation.
 */
export async function advanceSandbox(
  scope: EditScope,
  documentsOf: (generation: number) => Promise<SandboxDocuments>,
): Promise<readonly BackendStep[]> {
  const { edit, attempts } = scope;
  const known = new Set(attempts.map(({ attemptId }) => attemptId));
  for (;;) {
    const next = nextSteps(edit.row, attempts, edit.now);
    if (!('kind' in next))
      return next.map((step) =>
        step.kind === 'provision' ? { ...step, isFirstCall: !known.has(step.attempt.attemptId) } : step,
      );
    switch (next.kind) {
      case 'begin':
        edit.move('provisioning', AUTOMATION);
        continue;
      case 'try-next':
        await tryNext(scope, await documentsOf(edit.row.generation));
        continue;
      case 'start-hedge':
        await startHedge(scope, next.attempt, await documentsOf(edit.row.generation));
        continue;
      case 'start-teardown':
        edit.move('destroying', AUTOMATION, { reason: 'expired' });
        continue;
      case 'finish-teardown':
        if (edit.row.recreating) startNextGeneration(edit, await documentsOf(edit.row.generation + 1));
        else edit.move('destroyed', AUTOMATION);
        continue;
    }
  }
}
