import { outcomeOfError } from '../../../core/health/attempt-outcome.ts';
import type { AttemptRecord } from '../../../core/lifecycle/attempt.ts';
import type { SettleScope } from '../edit/attempt-edit.ts';
import { isOutrun, judgeAttempt } from '../edit/attempt-edit.ts';
import type { BackendFailure } from '../edit/backend-error.ts';
import { recordedError, wrongParts } from '../edit/backend-error.ts';
import { isolateKey } from '../edit/isolate-key.ts';
import { AUTOMATION } from '../edit/sandbox-edit.ts';
import type { Verdict } from './step.ts';
import { GO_ON } from './step.ts';

/**
 * Ends an attempt with an error. An attempt that may have made something is condemned, and torn down before another backend is
 * tried.
 */
export async function failAttempt(
  scope: SettleScope,
  attempt: AttemptRecord,
  failure: BackendFailure,
): Promise<Verdict> {
  const { edit } = scope;
  const nothingLeft = failure.creation === 'not_created';
  await judgeAttempt(scope, attempt.attemptId, outcomeOfError(failure.code, attempt), {
    state: nothingLeft ? 'gone' : 'condemned',
    creation: failure.creation,
    // An outrun attempt was stopped by us: its row has the reason already.
    ...(!isOutrun(scope, attempt) && {
      error: recordedError(failure),
      endedAt: edit.now,
    }),
  });
  await isolateKey(scope.tx, scope.deps, { attempt, failure, workspaceId: edit.row.workspaceId });
  if (edit.row.state === 'provisioning') {
    edit.note('sandbox.attempt_failed', AUTOMATION, {
      attempt: attempt.n,
      extension: attempt.extensionId,
      code: failure.code,
      detail: failure.detail,
      creation: failure.creation,
      ...wrongParts(failure.error.extras),
    });
  }
  return GO_ON;
}
