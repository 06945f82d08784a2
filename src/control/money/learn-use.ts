import type { MeterRecord } from '../../core/credits/meter.ts';
import { finishedUse } from '../../core/routing/learned-use.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

const MOST_SANDBOXES = 1_000;

/** A life that is over says how such lives are. Learning it twice changes nothing. */
export function learnUse({ uses }: ControlPorts, meter: MeterRecord): void {
  const { closedAt } = meter;
  if (closedAt !== null) uses.observe(finishedUse({ ...meter, closedAt }));
}

/** Learns, after a start, from the meters of the newest sandboxes, oldest first. */
export async function learnFromMeters(deps: ControlPorts): Promise<void> {
  const meters = await deps.store.read('finished-meters', async (tx) => {
    const { items } = await tx.sandboxes.list({ workspaceId: null, limit: MOST_SANDBOXES });
    const found: MeterRecord[] = [];
    for (const { uid } of items) found.push(...(await tx.meters.forSandbox(uid)));
    return found;
  });
  const finished = meters.filter(({ closedAt }) => closedAt !== null);
  for (const meter of finished.sort((one, other) => (one.closedAt as number) - (other.closedAt as number)))
    learnUse(deps, meter);
}
