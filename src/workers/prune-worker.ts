import { pruneHistory } from '../control/events/prune-history.ts';
import type { ControlPorts } from '../control/ports/control-ports.ts';
import { Loop } from './loop.ts';

const HOUR_MS = 3_600_000;

export function pruneWorker(deps: ControlPorts): Loop {
  return new Loop('prune', deps, async () => {
    await pruneHistory(deps);
    return deps.clock.now() + HOUR_MS;
  });
}
