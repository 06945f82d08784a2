import { abortable } from '../../async/abortable.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { after } from '../../core/ports/clock.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { LeaseLost } from './edit/interruption.ts';

export interface CallGuard {
  /** The time limit of the call. */
  readonly timeoutMs: number;
  /** Called every third of a lease; returns whether the lease is still ours. */
  renewLease(): Promise<boolean>;
}

/**
 * Runs one backend call under a deadline, keeping the lease alive meanwhile. It settles when the call does or when the
 * controller aborts, whichever comes first: a backend that ignores the abort cannot hold us up.
 */
export async function guardedCall<T>(
  deps: ControlPorts,
  controller: AbortController,
  guard: CallGuard,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal } = controller;
  const stopWatching = watchOver(deps, controller, guard);
  try {
    signal.throwIfAborted();
    return await abortable(call(signal), signal);
  } finally {
    await stopWatching();
  }
}

/** Keeps the lease and the deadline until the returned function is called; that function waits for a renewal under way. */
function watchOver(deps: ControlPorts, controller: AbortController, guard: CallGuard): () => Promise<void> {
  const { clock, settings } = deps;
  const endsAt = clock.now() + guard.timeoutMs;
  let over = false;
  let renewing: Promise<void> | null = null;
  let cancel = () => {};
  const renew = async () => {
    try {
      if (!(await guard.renewLease())) controller.abort(new LeaseLost());
    } catch (error) {
      deps.log.warn({ err: error }, 'a lease could not be renewed');
    }
    renewing = null;
    watch();
  };
  const watch = () => {
    if (over || controller.signal.aborted) return;
    const untilEnd = endsAt - clock.now();
    if (untilEnd > 0) {
      cancel = after(clock, Math.min(untilEnd, settings.leaseMs / 3), () => {
        renewing = renew();
      });
      return;
    }
    controller.abort(
      new SandboxerError('SBX_TIMEOUT', `The backend did not answer within ${guard.timeoutMs / 1000} s.`),
    );
  };
  watch();
  return async () => {
    over = true;
    cancel();
    await renewing;
  };
}
