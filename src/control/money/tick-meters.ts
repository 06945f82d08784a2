import { billedUntil } from '../../core/credits/ledger/funding.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { billableAt, tickMeter } from './sandbox-money.ts';

const BATCH = 100;

/**
 * Captures what running sandboxes have used. Returns for how many that was more than before: above 0, there may be more. A
 * sandbox past its deadline, or past what it is funded for, adds nothing and stays due.
 */
export async function tickMeters(deps: ControlPorts): Promise<number> {
  const now = deps.clock.now();
  return deps.store.transaction('tick', async (tx) => {
    const due = await tx.meters.openSince(now - deps.settings.meterTickMs, BATCH);
    let moved = 0;
    for (const meter of due) {
      const sandbox = await tx.sandboxes.get(meter.sandboxUid);
      const until = billedUntil(meter, sandbox?.deadlineAt ?? now, billableAt(deps, now));
      if (until <= meter.since) continue;
      await tickMeter({ tx, deps, at: until }, meter);
      moved += 1;
    }
    return moved;
  });
}
