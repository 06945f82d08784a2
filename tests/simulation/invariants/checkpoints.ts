import type { SandboxRecord } from '../../../src/core/lifecycle/sandbox.ts';
import { CHECKPOINT_PROFILE } from '../catalogue.ts';
import type { AppliedCommit, AuditContext } from './audit-context.ts';

const ESTABLISHED: ReadonlySet<string> = new Set(['ready', 'active', 'paused']);

/** The time that ended it: the earlier one of those that had come. */
function dueAt(row: SandboxRecord): number {
  return Math.min(row.deadlineAt, row.idleDeadlineAt ?? Number.POSITIVE_INFINITY);
}

function isKept(row: SandboxRecord, due: number): boolean {
  const { operation } = row;
  if (operation?.kind !== 'snapshot' || operation.finishedAt === null) return false;
  // One that failed was tried; one that was cut off was not waited for.
  return operation.requestedAt >= due && operation.error?.code !== 'SBX_CANCELLED';
}

/** Where a profile says so, nothing ends at its time before its files were kept, or that was tried for long enough. */
export function checkCheckpoints(ctx: AuditContext, commit: AppliedCommit): void {
  for (const [uid, row] of commit.after) {
    const before = commit.before.get(uid);
    if (before?.profileId !== CHECKPOINT_PROFILE) continue;
    if (row.state !== 'expired' || !ESTABLISHED.has(before.state)) continue;
    const { checkpointMs } = ctx.scenario.settings;
    // What is not paid for ends, too: a little before the backend ends it by itself.
    const paidUntil =
      ctx.mirror.meters.get(before.meterId as string)?.fundedUntil ?? Number.POSITIVE_INFINITY;
    const due = Math.min(dueAt(before), paidUntil - ctx.scenario.settings.deadManGraceMs);
    const given = ctx.scheduler.now - due;
    if (!isKept(row, due) && given < checkpointMs)
      ctx.fail('checkpoint-kept', `${uid} ended ${given} ms after its time, and nothing of it was kept`);
  }
}
