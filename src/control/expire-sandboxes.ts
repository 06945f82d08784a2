import type { SandboxRecord } from '../core/sandbox.ts';
import type { Activity } from './activity.ts';
import type { ControlDeps } from './deps.ts';
import type { Driver } from './driver.ts';
import { AUTOMATION, SandboxEdit, saveEdit } from './sandbox-edit.ts';

const BATCH = 100;

async function expire(
  deps: ControlDeps,
  uid: string,
  stillDue: (row: SandboxRecord, now: number) => boolean,
  reason: string,
): Promise<boolean> {
  return deps.store.transaction('expire', async (tx) => {
    const row = await tx.sandboxes.get(uid);
    const now = deps.clock.now();
    if (!row || !stillDue(row, now)) return false;
    const edit = new SandboxEdit(row, deps, now);
    edit.move(row.state === 'failed' ? 'destroying' : 'expired', AUTOMATION, { reason });
    await saveEdit(tx, deps, edit);
    return true;
  });
}

function pastDeadline(row: SandboxRecord, now: number): boolean {
  const watched = row.state !== 'expired' && row.state !== 'destroying' && row.state !== 'destroyed';
  return watched && row.deadlineAt <= now;
}

function pastIdle(row: SandboxRecord, now: number): boolean {
  return row.idleDeadlineAt !== null && row.idleDeadlineAt <= now;
}

/** Ends what is past its stored deadline. Answers how many were due: a full batch means there may be more. */
export async function expireSandboxes(deps: ControlDeps, driver: Driver): Promise<number> {
  const due = await deps.store.read('due-deadlines', (tx) =>
    tx.sandboxes.dueDeadlines(deps.clock.now(), BATCH),
  );
  for (const { uid } of due) {
    if (!(await expire(deps, uid, pastDeadline, 'ttl'))) continue;
    driver.interrupt(uid);
    void driver.drive(uid);
  }
  return due.length;
}

/** Ends what nobody used for too long, unless this process knows of a later use than the row does. */
export async function reapIdleSandboxes(
  deps: ControlDeps,
  driver: Driver,
  activity: Activity,
): Promise<number> {
  const due = await deps.store.read('due-idle', (tx) => tx.sandboxes.dueIdle(deps.clock.now(), BATCH));
  for (const row of due) {
    const lastUse = activity.lastUse(row.uid);
    if (lastUse !== null && lastUse > (row.lastActivityAt ?? 0)) {
      await activity.write(row.uid, lastUse);
      continue;
    }
    if (!(await expire(deps, row.uid, pastIdle, 'idle'))) continue;
    driver.interrupt(row.uid);
    void driver.drive(row.uid);
  }
  return due.length;
}
