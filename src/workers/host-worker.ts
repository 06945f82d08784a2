import type { ControlDeps } from '../control/deps.ts';
import { probeHosts } from '../control/hosts/manage-hosts.ts';
import { Loop } from './loop.ts';

export function hostWorker(deps: ControlDeps, everyMs: number): Loop {
  return new Loop('hosts', deps.clock, deps.log, async (signal) => {
    await probeHosts(deps, signal);
    return deps.clock.now() + everyMs;
  });
}
