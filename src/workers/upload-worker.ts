import { sweepUploads } from '../control/assets/sweep-uploads.ts';
import type { ControlPorts } from '../control/ports/control-ports.ts';
import { Loop } from './loop.ts';

const EVERY_MS = 600_000;

export function uploadWorker(deps: ControlPorts): Loop {
  return new Loop('uploads', deps, async () => {
    await sweepUploads(deps);
    return deps.clock.now() + EVERY_MS;
  });
}
