import { SandboxerError } from '../contract/errors.ts';
import type { ControlDeps } from './deps.ts';
import { DONE } from './done.ts';

export interface StepGuard {
  /** How long the step may take. */
  readonly timeoutMs: number;
  /** Called every third of a lease; answers whether the lease is still ours. */
  renewLease(): Promise<boolean>;
}

/**
 * Runs one backend call under a deadline, keeping the lease alive meanwhile. It settles when the call does or when the
 * controller aborts, whichever comes first: a backend that ignores the abort cannot hold us up.
 */
export async function runStep<T>(
  deps: ControlDeps,
  controller: AbortController,
  guard: StepGuard,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal } = controller;
  const finished = new AbortController();
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  aborted.catch(() => {});
  const watch = watchOver(deps, controller, guard, finished.signal);
  try {
    signal.throwIfAborted();
    const result = call(signal);
    result.catch(() => {});
    return await Promise.race([result, aborted]);
  } finally {
    finished.abort(DONE);
    await watch;
  }
}

async function watchOver(
  deps: ControlDeps,
  controller: AbortController,
  guard: StepGuard,
  finished: AbortSignal,
): Promise<void> {
  const { clock, settings } = deps;
  const endsAt = clock.now() + guard.timeoutMs;
  while (!finished.aborted && !controller.signal.aborted) {
    const untilEnd = endsAt - clock.now();
    if (untilEnd <= 0) {
      controller.abort(
        new SandboxerError('SBX_TIMEOUT', `The backend did not answer within ${guard.timeoutMs / 1000} s.`),
      );
      return;
    }
    try {
      await clock.sleep(Math.min(untilEnd, settings.leaseMs / 3), finished);
    } catch {
      return;
    }
    try {
      if (!(await guard.renewLease())) controller.abort(new LeaseLost());
    } catch (error) {
      deps.log.warn({ err: error }, 'a lease could not be renewed');
    }
  }
}

/** Another worker took over: whatever this one still does must not be written. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/** What was being made is no longer needed: the sandbox is ready on another attempt. */
export class Outrun extends Error {
  override readonly name = 'Outrun';
}

/** Somebody asked for the opposite meanwhile, such as destroying what is being provisioned. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}
