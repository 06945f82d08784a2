import { isEstablished, isLiving } from '../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../core/lifecycle/sandbox.ts';

/**
 * The times that the sweeps look for, derived from the row. Both stores search by these, so that "due" means the same
 * in each: a row is due at `now` exactly when its time is at or before `now`.
 */

/** Returns from when on `dueWork` finds the row: when it has work and no lease is in force. */
export function claimableAt(record: SandboxRecord): number | null {
  if (record.workDueAt === null) return null;
  return record.lease === null ? record.workDueAt : Math.max(record.workDueAt, record.lease.until);
}

export function watchedDeadline(record: SandboxRecord): number | null {
  return isLiving(record.state) || record.state === 'failed' ? record.deadlineAt : null;
}

export function watchedIdleDeadline(record: SandboxRecord): number | null {
  return record.state === 'ready' || record.state === 'active' ? record.idleDeadlineAt : null;
}

export function establishedOn(record: SandboxRecord): string | null {
  return isEstablished(record.state) ? record.extensionId : null;
}

/** Returns the row without its lease, due by `now` at the latest: the process that held the lease will not come back. */
export function withoutLease(record: SandboxRecord, now: number): SandboxRecord {
  return { ...record, lease: null, workDueAt: Math.min(record.workDueAt ?? now, now) };
}
