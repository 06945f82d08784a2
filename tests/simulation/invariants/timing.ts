import type { SandboxRecord } from '../../../src/core/lifecycle/sandbox.ts';
import { CHECKPOINT_PROFILE } from '../catalogue.ts';
import { lives } from '../mirror.ts';
import type { AuditContext } from './audit-context.ts';

/** How late a sweep may be once a process is up and time runs evenly. */
const ENFORCED_WITHIN_MS = 3_000;

/** Returns how long the end of an idle sandbox waits for a snapshot that a client asked for before the sweep came. */
function waitedUntil(
  { scenario }: AuditContext,
  { operation }: SandboxRecord,
  idleDeadlineAt: number,
  now: number,
): number {
  if (operation?.kind !== 'snapshot') return idleDeadlineAt;
  return Math.min(operation.finishedAt ?? now, idleDeadlineAt + scenario.settings.checkpointMs);
}

/** Every stored time is acted on, whoever stored it and whatever died since. */
export function checkTiming(ctx: AuditContext, now: number): void {
  const steady = ctx.steadySince();
  if (steady === null) return;
  const late = (at: number) => now - Math.max(at, steady) > ENFORCED_WITHIN_MS;
  for (const row of ctx.mirror.unfinished.values()) {
    const { uid, state, lease } = row;
    const graceMs = row.profileId === CHECKPOINT_PROFILE ? ctx.scenario.settings.checkpointMs : 0;
    if ((lives(row) || state === 'failed') && late(row.deadlineAt + graceMs)) {
      ctx.fail('deadline-enforced', `${uid} is ${state}, ${now - row.deadlineAt} ms after its deadline`);
    }
    if (
      row.idleDeadlineAt !== null &&
      (state === 'ready' || state === 'active') &&
      late(Math.max(row.idleDeadlineAt + graceMs, waitedUntil(ctx, row, row.idleDeadlineAt, now)))
    ) {
      ctx.fail('idle-enforced', `${uid} is ${state}, ${now - row.idleDeadlineAt} ms after its idle deadline`);
    }
    if (lease !== null && !ctx.isAlive(lease.owner) && late(ctx.scenario.replicas === 1 ? 0 : lease.until)) {
      ctx.fail('no-lease-of-the-dead', `${uid} is leased to ${lease.owner}, which is dead`);
    }
    const free = lease === null || late(lease.until);
    if (row.workDueAt !== null && free && late(row.workDueAt)) {
      ctx.fail('due-work-done', `${uid} is ${state} and due since ${now - row.workDueAt} ms`);
    }
  }
}
