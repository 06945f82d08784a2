import { SandboxerError } from '../contract/errors.ts';
import type { ControlDeps } from './deps.ts';
import { DONE } from './done.ts';

/**
 * Runs a backend call that must not hold up its worker: its signal aborts when `signal` does or the time is up, and the
 * call is then left alone, whether or not it listens.
 */
export async function within<T>(
  deps: ControlDeps,
  timeoutMs: number,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const finished = new AbortController();
  const late = deps.clock.sleep(timeoutMs, AbortSignal.any([signal, finished.signal])).then(
    () => new SandboxerError('SBX_TIMEOUT', `The backend did not answer within ${timeoutMs / 1000} s.`),
    () => null,
  );
  const given = new AbortController();
  const abandoned = late.then((timeout) => {
    if (finished.signal.aborted) return;
    const reason: unknown = timeout ?? signal.reason;
    given.abort(reason);
    throw reason;
  });
  abandoned.catch(() => {});
  try {
    const result = call(given.signal);
    result.catch(() => {});
    return (await Promise.race([result, abandoned])) as T;
  } finally {
    finished.abort(DONE);
  }
}
