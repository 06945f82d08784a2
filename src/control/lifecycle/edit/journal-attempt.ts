import type { AttemptRecord } from '../../../core/lifecycle/attempt.ts';
import { attemptIdOf } from '../../../core/lifecycle/attempt.ts';
import type { SandboxDocuments } from '../../../core/lifecycle/sandbox.ts';
import type { Recipe } from '../../../core/recipe/recipe.ts';
import type { RouteTarget } from '../../../core/routing/routing.ts';
import { routeTargets } from '../../../core/routing/routing.ts';
import type { EditScope } from './attempt-edit.ts';
import type { SandboxEdit } from './sandbox-edit.ts';

function attemptOn(edit: SandboxEdit, n: number, target: RouteTarget, recipe: Recipe): AttemptRecord {
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
    judged: null,
    teardownTries: 0,
    teardownError: null,
    stuckSince: null,
    providerKeyId: target.providerKeyId,
    hedgeAt: null,
    hedges: null,
    outrunBy: null,
  };
}

/** Puts the next target of the plan on record as being tried; `null` when none is left. */
export async function journalNext(
  { tx, edit, attempts }: Omit<EditScope, 'deps'>,
  { plan, recipe }: SandboxDocuments,
  more: Partial<Pick<AttemptRecord, 'hedgeAt' | 'hedges'>> = {},
): Promise<AttemptRecord | null> {
  const tried = attempts.filter((attempt) => attempt.generation === edit.row.generation).length;
  const target = routeTargets(plan)[tried];
  if (!target) return null;
  const attempt = { ...attemptOn(edit, tried + 1, target, recipe), ...more };
  await tx.attempts.insert(attempt);
  attempts.push(attempt);
  return attempt;
}
