import type { ControlDeps } from './deps.ts';
import { tickMeter } from './sandbox-money.ts';

const BATCH = 100;

/** Captures what running sandboxes have used. Answers how many were due: a full batch means there may be more. */
export async function tickMeters(deps: ControlDeps): Promise<number> {
  const now = deps.clock.now();
  return deps.store.transaction('tick', async (tx) => {
    const due = await tx.meters.openSince(now - deps.settings.meterTickMs, BATCH);
    for (const meter of due) {
      const sandbox = await tx.sandboxes.get(meter.sandboxUid);
      const until = Math.min(now, sandbox?.deadlineAt ?? now);
      await tickMeter(tx, deps, meter, Math.max(until, meter.since), meter.rate);
    }
    return due.length;
  });
}
