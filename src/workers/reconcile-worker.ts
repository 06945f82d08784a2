import { sweepKept } from '../control/assets/sweep-kept.ts';
import type { Control } from '../control/control.ts';
import type { MissingOnce } from '../control/hosts/reconcile-extension.ts';
import { reconcileExtension } from '../control/hosts/reconcile-extension.ts';
import type { ControlPorts } from '../control/ports/control-ports.ts';
import { sweepSnapshots } from '../control/snapshots/sweep-snapshots.ts';
import type { Extension } from '../core/ports/extension.ts';
import { Loop } from './loop.ts';

/** Makes a loop for one backend: a backend that hangs or fails delays no other. */
export function reconcileWorker(control: Control, extension: Extension): Loop {
  const missingOnce: MissingOnce = new Set();
  return new Loop(`reconcile ${extension.header.id}`, control, async (signal) => {
    const { removed, lost } = await reconcileExtension(control, extension, missingOnce, signal);
    if (removed + lost > 0) control.log.warn({ extension: extension.header.id, removed, lost }, 'reconciled');
    return control.clock.now() + control.settings.reconcileMs;
  });
}

/** Sweeps snapshots, images and volumes whose time is over, or that could not be deleted at once. */
export function snapshotWorker(deps: ControlPorts): Loop {
  return new Loop('snapshots', deps, async () => {
    await sweepSnapshots(deps);
    await sweepKept(deps);
    return deps.clock.now() + deps.settings.reconcileMs;
  });
}
