import type { ErrorCode } from '../../contract/errors.ts';
import { ERRORS, failsEverywhere } from '../../contract/errors.ts';
import { Creation } from '../../contract/state.ts';
import type { AttemptRecord } from '../../core/attempt.ts';
import type { WaitingStep } from '../../core/next-step.ts';
import { nextSteps } from '../../core/next-step.ts';
import type { SandboxDocuments, SandboxFailureRecord } from '../../core/sandbox.ts';
import type { Tx } from '../../core/store.ts';
import type { ControlDeps } from '../deps.ts';
import { wrongParts } from './backend-error.ts';
import { journalNext } from './journal-attempt.ts';
import type { SandboxEdit } from './sandbox-edit.ts';
import { AUTOMATION } from './sandbox-edit.ts';
import { startHedge } from './start-hedge.ts';

/** The steps that take time. */
export type BackendStep =
  | Exclude<WaitingStep, { kind: 'provision' }>
  | {
      readonly kind: 'provision';
      readonly attempt: AttemptRecord;
      /** Journalled in this very commit. Otherwise it was called for before, and what came of that is not known. */
      readonly isFirstCall: boolean;
    };

/** The most that one of the attempts may have made. */
function creationOf(attempts: readonly AttemptRecord[]): Creation {
  const made = attempts.map(({ creation }) => Creation.options.indexOf(creation ?? 'not_created'));
  return Creation.options[Math.max(0, ...made)] as Creation;
}

/** The last error of the attempts, when the request fails with it everywhere. */
function errorOfRequest(attempts: readonly AttemptRecord[]): AttemptRecord['error'] {
  const error = attempts.at(-1)?.error ?? null;
  return error !== null && failsEverywhere(error.code) ? error : null;
}

/** One attempt, or one that would fail everywhere, speaks for itself; several are summed up. */
export function failureOf(attempts: readonly AttemptRecord[], at: number): SandboxFailureRecord {
  const failed = attempts.filter((attempt) => attempt.error !== null);
  const [only] = failed;
  const single = errorOfRequest(attempts) ?? (failed.length === 1 && only?.error ? only.error : null);
  const code = (single?.code ?? 'SBX_PROVISION_FAILED') as ErrorCode;
  const detail =
    single?.detail ??
    (failed.map((attempt) => `${attempt.extensionId}: ${attempt.error?.detail}`).join('; ') ||
      'No backend could be tried.');
  const remedy = single?.remedy ?? ERRORS[code]?.remedy ?? ERRORS.SBX_PROVISION_FAILED.remedy;
  const backend = failed.find(({ error }) => error === single)?.extensionId;
  const creation = creationOf(attempts);
  return { code, detail, remedy, at, creation, ...(backend && { backend }), ...wrongParts(single ?? {}) };
}

/** Returns the details of the event of a failure. */
export function failureDetails(failure: SandboxFailureRecord): Readonly<Record<string, unknown>> {
  return { code: failure.code, detail: failure.detail, ...wrongParts(failure) };
}

async function tryNext(
  tx: Tx,
  edit: SandboxEdit,
  attempts: AttemptRecord[],
  documents: SandboxDocuments,
): Promise<void> {
  const tried = attempts.filter((attempt) => attempt.generation === edit.row.generation);
  const afterMs = documents.plan.hedge?.after_ms ?? null;
  const hedgeAt = tried.length === 0 && afterMs !== null ? edit.now + afterMs : null;
  // The request's own fault: no other backend is tried with it.
  const isHopeless = errorOfRequest(tried) !== null;
  if (!isHopeless && (await journalNext(tx, edit, attempts, documents, { hedgeAt }))) return;
  const failure = failureOf(tried, edit.now);
  edit.patch({ failure });
  edit.move('failed', AUTOMATION, failureDetails(failure));
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
 * Takes every step that is database work alone, in the caller's transaction, and answers those that then take time.
 * `documentsOf` reads the recipe and plan of a generation.
 */
export async function advanceSandbox(
  tx: Tx,
  deps: ControlDeps,
  edit: SandboxEdit,
  attempts: AttemptRecord[],
  documentsOf: (generation: number) => Promise<SandboxDocuments>,
): Promise<readonly BackendStep[]> {
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
        await tryNext(tx, edit, attempts, await documentsOf(edit.row.generation));
        continue;
      case 'start-hedge':
        await startHedge(tx, deps, edit, attempts, next.attempt, await documentsOf(edit.row.generation));
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
