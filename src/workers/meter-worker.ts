import type { Control } from '../control/control.ts';
import { expireGrants } from '../control/money/expire-grants.ts';
import { measureUse } from '../control/money/measure-use.ts';
import { tickMeters } from '../control/money/tick-meters.ts';
import type { ControlPorts } from '../control/ports/control-ports.ts';
import { fundSandboxes } from '../control/sandboxes/fund-sandboxes.ts';
import { Loop } from './loop.ts';

/** A meter that is due already waits for its backend: look again soon, but do not spin. */
const AGAIN_MS = 100;

export function meterWorker(deps: ControlPorts): Loop {
  return new Loop('meter', deps, async (signal) => {
    while (!signal.aborted && (await tickMeters(deps)) > 0) {}
    await expireGrants(deps);
    await measureUse(deps, signal);
    return deps.clock.now() + deps.settings.meterTickMs;
  });
}

/** Pays for the next stretch of what is metered, and moves its end at the backend. */
export function fundingWorker(control: Control): Loop {
  return new Loop('funding', control, async (signal) => {
    await fundSandboxes(control, signal);
    const next = await control.store.read('next-funding', (tx) => tx.meters.nextFundingAt());
    const now = control.clock.now();
    return Math.max(
      now + AGAIN_MS,
      Math.min(next ?? Number.POSITIVE_INFINITY, now + control.settings.fundMs / 8),
    );
  });
}
