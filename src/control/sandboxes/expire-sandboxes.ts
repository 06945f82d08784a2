import { isEstablished } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { pendingOperation } from '../../core/lifecycle/sandbox.ts';
import type { Control } from '../control.ts';
import { AUTOMATION, SandboxEdit, saveEdit } from '../lifecycle/edit/sandbox-edit.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { keepsProcesses, lastRun } from '../use/last-run.ts';
import { checkpointFirst } from './checkpoint-first.ts';

const BATCH = 100;
/** A sandbox whose backend does not say whether a program runs in it is asked again, and is ended after this time. */
const UNANSWERED_MS = 60_000;
const ASK_AGAIN_MS = 5_000;

/**
 * By sandbox, the operation that its checkpoint has to wait for. The map only saves calls: a process without an entry asks once
 * more.
 */
export type WaitingFor = Map<string, string>;

/** Returns when the sandbox became due, or `null`. */
type DueAt = (row: SandboxRecord, now: number) => number | null;

interface Expiry {
  readonly dueAt: DueAt;
  readonly reason: 'idle' | 'ttl';
}

/** Ends what is still due, or begins the checkpoint that comes first. Returns whether anything was done. */
async function expire(
  control: Control,
  waitingFor: WaitingFor,
  seen: SandboxRecord,
  { dueAt, reason }: Expiry,
): Promise<boolean> {
  const { uid } = seen;
  if (isBeingKept(control, waitingFor, seen, dueAt)) return false;
  waitingFor.delete(uid);
  const done = await control.store.transaction('expire', async (tx) => {
    const row = await tx.sandboxes.get(uid);
    const now = control.clock.now();
    const due = row && dueAt(row, now);
    if (!row || due === null) return null;
    const checkpoint = await checkpointFirst(tx, control, { sandbox: row, dueAt: due, cause: reason });
    if (checkpoint.kind !== 'end') return checkpoint;
    const edit = new SandboxEdit(row, control, now);
    const { snapshotId } = checkpoint;
    if (snapshotId !== null) edit.patch({ notes: [...row.notes, keptAs(snapshotId)] });
    edit.move(row.state === 'failed' ? 'destroying' : 'expired', AUTOMATION, {
      reason,
      ...(snapshotId === null ? {} : { checkpoint: snapshotId }),
    });
    await saveEdit(tx, control, edit);
    return checkpoint;
  });
  if (done?.kind === 'wait') waitingFor.set(uid, done.operationId);
  if (done === null || done.kind === 'wait') return false;
  if (done.kind === 'begun') {
    void control.driver.follow(done.taken);
    return true;
  }
  control.driver.interrupt(uid);
  void control.driver.drive(uid);
  return true;
}

/** Whether its checkpoint is under way or waits for its turn: there is nothing to do until that ends or takes too long. */
function isBeingKept(
  { clock, settings }: ControlPorts,
  waitingFor: WaitingFor,
  row: SandboxRecord,
  dueAt: DueAt,
): boolean {
  const now = clock.now();
  const due = dueAt(row, now);
  const operation = isEstablished(row.state) ? pendingOperation(row) : null;
  if (due === null || operation === null || now >= due + settings.checkpointMs) return false;
  const isCheckpoint = operation.kind === 'snapshot' && operation.requestedAt >= due;
  return isCheckpoint || waitingFor.get(row.uid) === operation.id;
}

function keptAs(snapshotId: string): string {
  return `Its files were kept as the snapshot ${snapshotId}: restore it to go on.`;
}

function pastDeadline(row: SandboxRecord, now: number): number | null {
  const watched = row.state !== 'expired' && row.state !== 'destroying' && row.state !== 'destroyed';
  return watched && row.deadlineAt <= now ? row.deadlineAt : null;
}

function pastIdle(row: SandboxRecord, now: number): number | null {
  return row.idleDeadlineAt !== null && row.idleDeadlineAt <= now ? row.idleDeadlineAt : null;
}

/** Acts on due rows. Reads a larger batch while no row of a whole batch could be acted on: waiting rows must not hide others. */
async function actOn(
  due: (limit: number) => Promise<readonly SandboxRecord[]>,
  act: (row: SandboxRecord) => Promise<boolean>,
): Promise<void> {
  for (let limit = BATCH; ; limit *= 2) {
    const rows = await due(limit);
    let acted = 0;
    for (const row of rows) acted += (await act(row)) ? 1 : 0;
    if (rows.length < limit || acted > 0) return;
  }
}

/** Ends what is past its stored deadline. */
export async function expireSandboxes(control: Control, waitingFor: WaitingFor): Promise<void> {
  const due = (limit: number) =>
    control.store.read('due-deadlines', (tx) => tx.sandboxes.dueDeadlines(control.clock.now(), limit));
  await actOn(due, (row) => expire(control, waitingFor, row, { dueAt: pastDeadline, reason: 'ttl' }));
}

/** Sandboxes whose backend is being asked whether a program runs in them: the others do not wait for the answer. */
export type BeingAsked = Set<string>;

/**
 * Ends sandboxes that were idle for too long. A sandbox is not idle if this process knows of a later use than the row does, or if
 * a process that was started in its background still runs or ended since: the backend is asked for that when the time has come,
 * and not before.
 */
export async function reapIdleSandboxes(
  control: Control,
  waitingFor: WaitingFor,
  beingAsked: BeingAsked,
): Promise<void> {
  const due = (limit: number) =>
    control.store.read('due-idle', (tx) => tx.sandboxes.dueIdle(control.clock.now(), limit));
  const noted = async (row: SandboxRecord): Promise<boolean> => {
    const lastUse = control.activity.lastUse(row.uid);
    if (lastUse === null || lastUse <= (row.lastActivityAt ?? 0) || lastUse < (row.readyAt ?? 0))
      return false;
    await control.activity.write(row.uid, lastUse);
    return true;
  };
  const end = (row: SandboxRecord) => expire(control, waitingFor, row, { dueAt: pastIdle, reason: 'idle' });
  const endUnlessRunning = async (row: SandboxRecord) => {
    const last = await lastRun(control, control.sessions, row);
    // The server stops: the next one asks.
    if (control.sessions.isClosing) return;
    if (last === null && control.clock.now() < (row.idleDeadlineAt ?? 0) + UNANSWERED_MS)
      return await control.clock.sleep(ASK_AGAIN_MS);
    if (last !== null && last > (row.lastActivityAt ?? row.readyAt ?? 0))
      await control.activity.write(row.uid, last);
    // The sandbox may have been used while its backend was asked.
    else if (!(await noted(row))) await end(row);
  };
  await actOn(due, async (row) => {
    if (beingAsked.has(row.uid)) return false;
    if (await noted(row)) return true;
    if (isBeingKept(control, waitingFor, row, pastIdle) || !keepsProcesses(control, row))
      return await end(row);
    beingAsked.add(row.uid);
    void endUnlessRunning(row)
      .catch((error: unknown) => control.log.warn({ err: error }, 'an idle sandbox was not ended'))
      .finally(() => beingAsked.delete(row.uid));
    return true;
  });
}
