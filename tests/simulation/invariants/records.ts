import type { AppliedCommit, AuditContext } from './audit-context.ts';

/** The transactions that accept what a client asked for. */
const VERBS: ReadonlySet<string> = new Set([
  'create',
  'restore',
  'fork',
  'destroy',
  'recreate',
  'pause',
  'resume',
  'extend',
  'snapshot',
  'delete-snapshot',
  'grant',
]);
const CHANGES: ReadonlySet<string> = new Set(['sandbox', 'snapshot', 'transfer']);

/** Every sandbox that a request made or changed, and all that it granted, has its audit row in the same commit. */
export function checkRecords(ctx: AuditContext, { request, label, writes, after }: AppliedCommit): void {
  if (request === null || !VERBS.has(label)) return;
  if (!writes.some(({ table }) => CHANGES.has(table))) return;
  const named = new Set<string>();
  for (const write of writes) {
    if (write.table !== 'audit') continue;
    named.add(write.row.target);
    if (typeof write.row.details.made === 'string') named.add(write.row.details.made);
  }
  if (named.size === 0)
    ctx.fail('record-with-change', `a ${label} by request #${request.id} has no audit row`);
  if (label === 'snapshot') return;
  for (const { id } of after.values()) {
    if (!named.has(id))
      ctx.fail('record-with-change', `${id} was changed by ${label} and is in no audit row`);
  }
}
