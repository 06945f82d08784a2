import { SandboxerError } from '../../contract/errors/errors.ts';
import { after } from '../../core/ports/clock.ts';
import type { ControlDeps } from '../deps.ts';

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
  signal.throwIfAborted();
  const given = new AbortController();
  const onAbort = () => given.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const cancel = after(deps.clock, timeoutMs, () =>
    given.abort(
      new SandboxerError('SBX_TIMEOUT', `The backend did not answer within ${timeoutMs / 1000} s.`),
    ),
  );
  const abandoned = new Promise<never>((_resolve, reject) => {
    given.signal.addEventListener('abort', () => reject(given.signal.reason), { once: true });
  });
  abandoned.catch(() => {});
  try {
    const result = call(given.signal);
    result.catch(() => {});
    return await Promise.race([result, abandoned]);
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
  }
}
