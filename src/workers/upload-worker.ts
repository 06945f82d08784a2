import { sweepUploads } from '../control/assets/sweep-uploads.ts';
import type { ControlDeps } from '../control/deps.ts';
import { Loop } from './loop.ts';

const EVERY_MS = 600_000;

export function uploadWorker(deps: ControlDeps): Loop {
  return new Loop('uploads', deps.clock, deps.log, async () => {
    await sweepUploads(deps);
    return deps.clock.now() + EVERY_MS;
  });
}
