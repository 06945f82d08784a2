import type { Driver } from '../control/lifecycle/driver.ts';
import { resumeWork } from '../control/lifecycle/resume-work.ts';
import type { BeingAsked, WaitingFor } from '../control/sandboxes/expire-sandboxes.ts';
import { expireSandboxes, reapIdleSandboxes } from '../control/sandboxes/expire-sandboxes.ts';
import type { Use } from '../control/use/use-sandbox.ts';
import { Loop } from './loop.ts';

const AGAIN_MS = 50;

/** Deadlines, idleness and due work: sleeps until the earliest stored time, and looks again when a commit may have moved it. */
export function lifecycleWorker(use: Use, driver: Driver): Loop {
  const { deps } = use;
  const waitingFor: WaitingFor = new Map();
  const beingAsked: BeingAsked = new Set();
  return new Loop('lifecycle', deps.clock, deps.log, async () => {
    await expireSandboxes(deps, driver, waitingFor);
    await reapIdleSandboxes(use, driver, waitingFor, beingAsked);
    await resumeWork(deps, driver);
    const now = deps.clock.now();
    const due = await deps.store.read('next-due', (tx) => tx.sandboxes.nextDueAt());
    // What is due already is being driven or waits for a lease: look again soon, but do not spin.
    return due === null ? null : Math.max(due, now + AGAIN_MS);
  });
}
