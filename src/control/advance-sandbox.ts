import type { ErrorCode } from '../contract/errors.ts';
import { ERRORS } from '../contract/errors.ts';
import type { AttemptRecord } from '../core/attempt.ts';
import { attemptIdOf } from '../core/attempt.ts';
import type { Step } from '../core/next-step.ts';
import { nextStep } from '../core/next-step.ts';
import type { Recipe } from '../core/recipe.ts';
import type { RouteTarget } from '../core/routing.ts';
import { routeTargets } from '../core/routing.ts';
import type { SandboxDocuments, SandboxFailureRecord } from '../core/sandbox.ts';
import type { Tx } from '../core/store.ts';
import type { SandboxEdit } from './sandbox-edit.ts';
import { AUTOMATION } from './sandbox-edit.ts';

/** The steps that call a backend, and rest. */
export type BackendStep =
  | Exclude<Step, { kind: 'begin' | 'try-next' | 'start-teardown' | 'finish-teardown' | 'provision' }>
  | {
      readonly kind: 'provision';
      readonly attempt: AttemptRecord;
      /** Journalled in this very commit. Otherwise it was called for before, and what came of that is not known. */
      readonly isFirstCall: boolean;
    };

function journal(edit: SandboxEdit, n: number, target: RouteTarget, recipe: Recipe): AttemptRecord {
  const { uid, generation } = edit.row;
  return {
    attemptId: attemptIdOf(uid, generation, n),
    sandboxUid: uid,
    generation,
    n,
    extensionId: target.extension,
    hostId: target.host,
    reserved: {
      millicpu: Math.round((recipe.resources.cpu ?? 0) * 1000),
      memoryMb: recipe.resources.memory_mb ?? 0,
    },
    state: 'journalled',
    handle: null,
    creation: null,
    error: null,
    startedAt: edit.now,
    provisionedAt: null,
    endedAt: null,
    teardownTries: 0,
    teardownError: null,
    stuckSince: null,
  };
}

/** One attempt speaks for itself; several are summed up. */
export function failureOf(attempts: readonly AttemptRecord[], at: number): SandboxFailureRecord {
  const failed = attempts.filter((attempt) => attempt.error !== null);
  const [only] = failed;
  const single = failed.length === 1 && only?.error ? only.error : null;
  const code = (single?.code ?? 'SBX_PROVISION_FAILED') as ErrorCode;
  const detail =
    single?.detail ??
    (failed.map((attempt) => `${attempt.extensionId}: ${attempt.error?.detail}`).join('; ') ||
      'No backend could be tried.');
  return { code, detail, remedy: ERRORS[code]?.remedy ?? ERRORS.SBX_PROVISION_FAILED.remedy, at };
}

async function tryNext(
  tx: Tx,
  edit: SandboxEdit,
  attempts: AttemptRecord[],
  documents: SandboxDocuments,
): Promise<void> {
  const tried = attempts.filter((attempt) => attempt.generation === edit.row.generation);
  const target = routeTargets(documents.plan)[tried.length];
  if (target) {
    const attempt = journal(edit, tried.length + 1, target, documents.recipe);
    await tx.attempts.insert(attempt);
    attempts.push(attempt);
    return;
  }
  const failure = failureOf(tried, edit.now);
  edit.patch({ failure });
  edit.move('failed', AUTOMATION, { code: failure.code, detail: failure.detail });
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
 * Takes every step that is database work alone, in the caller's transaction, and answers the first that is not.
 * `documentsOf` reads the recipe and plan of a generation.
 */
export async function advanceSandbox(
  tx: Tx,
  edit: SandboxEdit,
  attempts: AttemptRecord[],
  documentsOf: (generation: number) => Promise<SandboxDocuments>,
): Promise<BackendStep> {
  const known = new Set(attempts.map(({ attemptId }) => attemptId));
  for (;;) {
    const step = nextStep(edit.row, attempts);
    switch (step.kind) {
      case 'begin':
        edit.move('provisioning', AUTOMATION);
        continue;
      case 'try-next':
        await tryNext(tx, edit, attempts, await documentsOf(edit.row.generation));
        continue;
      case 'start-teardown':
        edit.move('destroying', AUTOMATION, { reason: 'expired' });
        continue;
      case 'finish-teardown':
        if (edit.row.recreating) startNextGeneration(edit, await documentsOf(edit.row.generation + 1));
        else edit.move('destroyed', AUTOMATION);
        continue;
      case 'provision':
        return { ...step, isFirstCall: !known.has(step.attempt.attemptId) };
      default:
        return step;
    }
  }
}
