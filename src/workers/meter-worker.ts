import type { ControlDeps } from '../control/deps.ts';
import { tickMeters } from '../control/tick-meters.ts';
import { Loop } from './loop.ts';

export function meterWorker(deps: ControlDeps): Loop {
  return new Loop('meter', deps.clock, deps.log, async (signal) => {
    while (!signal.aborted && (await tickMeters(deps)) > 0) {}
    return deps.clock.now() + deps.settings.meterTickMs;
  });
}
