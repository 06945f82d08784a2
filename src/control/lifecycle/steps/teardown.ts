import type { AttemptRecord } from '../../../core/lifecycle/attempt.ts';
import { isRunning } from '../../../core/lifecycle/attempt.ts';
import type { CleanupReport } from '../../../core/ports/extension.ts';
import { contextFor, extensionOf } from '../../backends/backend-context.ts';
import { noteUse } from '../../money/measure-use.ts';
import { insureAttempt } from '../../money/sandbox-money.ts';
import type { ControlPorts } from '../../ports/control-ports.ts';
import { backoffMs } from '../../ports/settings.ts';
import type { SettleScope } from '../edit/attempt-edit.ts';
import { judgeAttempt, replaceAttempt } from '../edit/attempt-edit.ts';
import { failSandbox } from '../edit/attempt-failure.ts';
import { backendFailure } from '../edit/backend-error.ts';
import { isolateKey } from '../edit/isolate-key.ts';
import { AUTOMATION } from '../edit/sandbox-edit.ts';
import type { Step, Verdict } from './step.ts';
import { GO_ON, meterIdOf, stampOf } from './step.ts';

/**
 * Removes what an attempt made at its backend.
 *
 * The backend gets the stamp, and the handle if one was stored: after a lost reply the stamp alone must do. Only a report
 * that says *gone* ends the attempt; with anything else the step is taken again after a growing pause, reported as stuck
 * after `stuckAfterTries`, and never given up. A sandbox is `destroyed` once none of its attempts is left.
 */
export function teardownStep(deps: ControlPorts, attempt: AttemptRecord): Step<CleanupReport> {
  return {
    label: 'teardown',
    timeoutMs: deps.settings.teardownTimeoutMs,
    async call(signal) {
      const extension = extensionOf(deps, attempt.extensionId);
      const target = { stamp: stampOf(deps, attempt), handle: attempt.handle };
      const context = await contextFor(deps, attempt.hostId, signal, attempt.providerKeyId);
      return extension.teardown(target, context);
    },
    async settle(scope, report) {
      if (report.gone) return settleGone(scope, attempt, report);
      const left = report.remaining.map(({ what, reason }) => `${what}: ${reason}`).join('; ');
      return settleRemaining(scope, attempt, left || 'The backend did not confirm that it is gone.');
    },
    async fail(scope, error) {
      const failure = backendFailure(error, attempt.extensionId);
      const { workspaceId } = scope.edit.row;
      await isolateKey(scope.tx, deps, { attempt, failure, workspaceId });
      return settleRemaining(scope, attempt, failure.detail);
    },
  };
}

async function settleGone(
  scope: SettleScope,
  attempt: AttemptRecord,
  { used }: CleanupReport,
): Promise<Verdict> {
  const { tx, deps, edit } = scope;
  if (used) await noteUse(tx, deps, meterIdOf(attempt), used);
  const isServing = edit.row.attempt === attempt.n && edit.row.generation === attempt.generation;
  if (!isServing) await insureAttempt({ tx, deps, at: edit.now }, edit.row, attempt);
  // The attempt was judged before, unless it was given up between two calls.
  await judgeAttempt(scope, attempt.attemptId, 'caller', {
    state: 'gone',
    endedAt: edit.now,
    teardownError: null,
  });
  return GO_ON;
}

/** Records that the attempt is not gone: the step is due again after a pause, and reported as stuck after some tries. */
async function settleRemaining(scope: SettleScope, attempt: AttemptRecord, why: string): Promise<Verdict> {
  const { deps, edit } = scope;
  const tries = attempt.teardownTries + 1;
  const isNowStuck = attempt.stuckSince === null && tries >= deps.settings.stuckAfterTries;
  await replaceAttempt(scope, attempt.attemptId, {
    state: 'condemned',
    teardownTries: tries,
    teardownError: why,
    stuckSince: isNowStuck ? edit.now : attempt.stuckSince,
  });
  if (isNowStuck) {
    edit.note('sandbox.teardown_stuck', AUTOMATION, {
      extension: attempt.extensionId,
      attempt: attempt.n,
      tries,
      detail: why,
    });
  }
  // Whether something was created is unknown: another backend could be paid twice, so the sandbox fails instead.
  const isLast = !scope.attempts.some(isRunning);
  if (edit.row.state === 'provisioning' && isLast && tries >= deps.settings.ambiguousTries) {
    failSandbox(
      edit,
      scope.attempts.filter((other) => other.generation === edit.row.generation),
    );
  }
  return { retryAt: edit.now + backoffMs(deps.settings, tries, deps.ids.random()) };
}
