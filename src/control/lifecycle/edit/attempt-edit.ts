import type { AttemptJudgement, AttemptOutcome, AttemptRecord } from '../../../core/lifecycle/attempt.ts';
import { isRunning } from '../../../core/lifecycle/attempt.ts';
import type { Tx } from '../../../core/ports/store/store.ts';
import type { ControlPorts } from '../../ports/control-ports.ts';
import type { SandboxEdit } from './sandbox-edit.ts';

/** A sandbox being changed in one transaction: its row as an edit, and its attempts. */
export interface EditScope {
  readonly tx: Tx;
  readonly deps: ControlPorts;
  readonly edit: SandboxEdit;
  /** All attempts of the sandbox; the functions of this folder keep it in step with the store. */
  readonly attempts: AttemptRecord[];
}

export interface SettleScope extends EditScope {
  /** Attempts judged in this transaction: the health of their backends learns of them after the commit. */
  readonly judged: AttemptRecord[];
}

export async function replaceAttempt(
  { tx, attempts }: EditScope,
  attemptId: string,
  change: Partial<AttemptRecord>,
): Promise<AttemptRecord | null> {
  const index = attempts.findIndex((attempt) => attempt.attemptId === attemptId);
  const current = attempts[index];
  if (!current) return null;
  const next = { ...current, ...change };
  await tx.attempts.update(next);
  attempts[index] = next;
  return next;
}

function judgement(
  { deps, edit }: EditScope,
  { attemptId, extensionId, judged }: AttemptRecord,
  outcome: AttemptOutcome,
): AttemptJudgement {
  return judged ?? deps.health.judge(attemptId, extensionId, outcome, edit.now);
}

type AttemptEnd = Partial<AttemptRecord> & Partial<Pick<AttemptJudgement, 'ownMs'>>;

/** Writes the attempt together with its judgement. The first judgement stands; later ones change the row alone. */
export async function judgeAttempt(
  scope: SettleScope,
  attemptId: string,
  outcome: AttemptOutcome,
  { ownMs = 0, ...change }: AttemptEnd,
): Promise<void> {
  const current = scope.attempts.find((attempt) => attempt.attemptId === attemptId);
  if (!current) return;
  const next = await replaceAttempt(scope, attemptId, {
    ...change,
    judged: current.judged ?? { ...judgement(scope, current, outcome), ownMs },
  });
  if (next && current.judged === null) scope.judged.push(next);
}

export function isOutrun({ attempts }: EditScope, { attemptId }: AttemptRecord): boolean {
  return attempts.some((attempt) => attempt.attemptId === attemptId && attempt.outrunBy !== null);
}

/** Condemns every attempt that still runs when another one is ready: it is removed, at our expense. */
export async function condemnOutrun(scope: SettleScope, winner: AttemptRecord): Promise<void> {
  for (const attempt of scope.attempts.filter(isRunning)) {
    await judgeAttempt(scope, attempt.attemptId, 'outrun', {
      state: 'condemned',
      outrunBy: winner.n,
      error: { code: 'SBX_CANCELLED', detail: `Attempt ${winner.n} was ready first.` },
      endedAt: scope.edit.now,
    });
  }
}
