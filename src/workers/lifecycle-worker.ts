import type { Control } from '../control/control.ts';
import { resumeWork } from '../control/lifecycle/resume-work.ts';
import type { BeingAsked, WaitingFor } from '../control/sandboxes/expire-sandboxes.ts';
import { expireSandboxes, reapIdleSandboxes } from '../control/sandboxes/expire-sandboxes.ts';
import { Loop } from './loop.ts';

const AGAIN_MS = 50;

/** Deadlines, idleness and due work: sleeps until the earliest stored time, and looks again when a commit may have moved it. */
export function lifecycleWorker(control: Control): Loop {
  const waitingFor: WaitingFor = new Map();
  const beingAsked: BeingAsked = new Set();
  return new Loop('lifecycle', control, async () => {
    await expireSandboxes(control, waitingFor);
    await reapIdleSandboxes(control, waitingFor, beingAsked);
    await resumeWork(control, control.driver);
    const now = control.clock.now();
    const due = await control.store.read('next-due', (tx) => tx.sandboxes.nextDueAt());
    // A sandbox that is due already is being driven or waits for a lease: look again soon, but do not spin.
    return due === null ? null : Math.max(due, now + AGAIN_MS);
  });
}
