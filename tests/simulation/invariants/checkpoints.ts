import type { SandboxRecord } from '../../../src/core/sandbox.ts';
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
    const { now } = ctx.scheduler;
    // One that ends before its time ran out of money, and was given as long for it.
    const due = dueAt(before) > now ? now - checkpointMs : dueAt(before);
    const given = now - dueAt(before);
    if (!isKept(row, due) && given < checkpointMs)
      ctx.fail('checkpoint-kept', `${uid} ended ${given} ms after its time, and nothing of it was kept`);
  }
}
