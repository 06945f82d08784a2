import type { ControlPorts } from '../ports/control-ports.ts';
import type { Driver } from './driver.ts';

const BATCH = 200;

/** Drives sandboxes that are due and that no process holds: retries, and work that a dead process left. */
export async function resumeWork(deps: ControlPorts, driver: Driver): Promise<number> {
  const due = await deps.store.read('due-work', (tx) => tx.sandboxes.dueWork(deps.clock.now(), BATCH));
  const free = due.filter((row) => !driver.isDriving(row.uid));
  for (const row of free) void driver.drive(row.uid);
  return free.length;
}

/** Releases every foreign lease at start, where one process owns the database: their holders are dead. */
export async function releaseDeadLeases(deps: ControlPorts): Promise<number> {
  if (!deps.store.exclusive) return 0;
  return deps.store.transaction('recover', (tx) =>
    tx.sandboxes.releaseForeignLeases(deps.instance, deps.clock.now()),
  );
}
