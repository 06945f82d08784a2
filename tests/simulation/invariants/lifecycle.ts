import type { SandboxState } from '../../../src/contract/values/state.ts';
import type { EventRecord } from '../../../src/core/events/event.ts';
import type { SandboxRecord } from '../../../src/core/lifecycle/sandbox.ts';
import type { AppliedCommit, AuditContext } from './audit-context.ts';

/** SPEC §3 once more, written down by somebody else than `core/lifecycle/lifecycle.ts`. */
const MOVES: Readonly<Record<SandboxState, readonly SandboxState[]>> = {
  requested: ['provisioning', 'failed', 'expired', 'destroying'],
  provisioning: ['ready', 'failed', 'expired', 'destroying'],
  ready: ['active', 'paused', 'expired', 'failed', 'destroying'],
  active: ['paused', 'expired', 'failed', 'destroying'],
  paused: ['active', 'expired', 'failed', 'destroying'],
  expired: ['destroying'],
  failed: ['destroying'],
  destroying: ['destroyed', 'requested'],
  destroyed: [],
};

function checkRow(
  ctx: AuditContext,
  label: string,
  before: SandboxRecord | undefined,
  after: SandboxRecord,
  events: readonly EventRecord[],
): void {
  const { uid } = after;
  let state: SandboxState | null = before?.state ?? null;
  let seq = before?.eventSeq ?? 0;
  for (const event of events) {
    seq += 1;
    if (event.subjectSeq !== seq) {
      ctx.fail(
        'events-gapless',
        `${uid}: event ${event.type} has number ${event.subjectSeq}, not ${seq} (${label})`,
      );
    }
    const told = event.state as SandboxState;
    const moves = event.type === `sandbox.${told}`;
    if (moves && event.previousState !== state) {
      ctx.fail(
        'events-tell-transitions',
        `${uid}: ${event.type} says it was ${event.previousState}, it was ${state}`,
      );
    }
    if (!moves && told !== state) {
      ctx.fail('events-tell-transitions', `${uid}: ${event.type} says it is ${told}, it is ${state}`);
    }
    if (moves && state !== null && !MOVES[state].includes(told)) {
      ctx.fail('transition-in-table', `${uid}: ${state} → ${told} (${label})`);
    }
    if (moves && state === null && told !== 'requested') {
      ctx.fail('transition-in-table', `${uid} begins as ${told} (${label})`);
    }
    state = told;
  }
  if (state !== after.state) {
    ctx.fail(
      'event-with-transition',
      `${uid}: the row says ${after.state}, its last event ${state} (${label})`,
    );
  }
  if (seq !== after.eventSeq) {
    ctx.fail(
      'event-with-transition',
      `${uid}: the row counts ${after.eventSeq} events, ${seq} are written (${label})`,
    );
  }
  const generations = after.generation - (before?.generation ?? 0);
  const recreated = events.some(
    ({ previousState }) => previousState === 'destroying' && before !== undefined,
  );
  if (generations !== 0 && before !== undefined && !recreated) {
    ctx.fail(
      'generation-by-recreate',
      `${uid}: generation ${after.generation} came without a recreate (${label})`,
    );
  }
}

/** No transition outside the table, each with its event in the same commit, none skipped. */
export function checkLifecycle(ctx: AuditContext, commit: AppliedCommit): void {
  const { label, before, after, writes } = commit;
  for (const [uid, row] of after) {
    const events: EventRecord[] = [];
    for (const write of writes)
      if (write.table === 'event' && write.row.subject === uid) events.push(write.row);
    checkRow(ctx, label, before.get(uid), row, events);
  }
  for (const write of writes) {
    if (write.table !== 'event' || write.row.sandboxUid === null) continue;
    const isTheirs = write.row.subject === write.row.sandboxUid && !after.has(write.row.subject);
    if (isTheirs)
      ctx.fail(
        'event-with-transition',
        `${write.row.type} of ${write.row.subject} without its row (${label})`,
      );
  }
}
