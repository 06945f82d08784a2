import { probeHosts } from '../control/hosts/manage-hosts.ts';
import type { ControlPorts } from '../control/ports/control-ports.ts';
import { Loop } from './loop.ts';

export function hostWorker(deps: ControlPorts, everyMs: number): Loop {
  return new Loop('hosts', deps, async (signal) => {
    await probeHosts(deps, signal);
    return deps.clock.now() + everyMs;
  });
}
