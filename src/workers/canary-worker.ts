import { runDueCanaries, sweepCanaries } from '../control/hosts/canaries.ts';
import type { ControlPorts } from '../control/ports/control-ports.ts';
import { Loop } from './loop.ts';

const SWEEP_MS = 60_000;
/** Longer than any canary takes: an older record belongs to none under way. */
const OVER_MS = 1_200_000;

/** Removes what canaries left, also when none are run any more (`everyMs` is null). */
export function canaryWorker(deps: ControlPorts, everyMs: number | null): Loop {
  const startedAt = deps.clock.now();
  return new Loop('canaries', deps, async (signal) => {
    await sweepCanaries(deps, Math.max(startedAt, deps.clock.now() - OVER_MS), signal);
    if (everyMs === null) return deps.clock.now() + OVER_MS;
    const next = await runDueCanaries(deps, everyMs, signal);
    return Math.min(next, deps.clock.now() + SWEEP_MS);
  });
}
