import { abortable } from './abortable.ts';

/** Calls `action` after `ms`, unless the returned function was called before. The caller's clock provides it. */
export type After = (ms: number, action: () => void) => () => void;

export interface Timeout {
  readonly after: After;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a call whose signal aborts with `late()` when the time is up, or when `signal` does. Settles no later than that:
 * a call that does not listen to its signal is left alone.
 */
export async function withTimeout<T>(
  { after, timeoutMs, signal }: Timeout,
  late: () => unknown,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const given = new AbortController();
  const onAbort = () => given.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  const cancel = after(timeoutMs, () => given.abort(late()));
  try {
    return await abortable(call(given.signal), given.signal);
  } finally {
    cancel();
    signal?.removeEventListener('abort', onAbort);
  }
}

/** Waits for a promise no longer than the timeout: `null` when the time is up. An abort of the signal rejects. */
export async function waitAtMost<T>(
  promise: Promise<T>,
  { after, timeoutMs, signal }: Timeout,
): Promise<T | null> {
  signal?.throwIfAborted();
  const late = Promise.withResolvers<null>();
  const giveUp = () => late.resolve(null);
  const cancel = after(timeoutMs, giveUp);
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    const first = await Promise.race([promise, late.promise]);
    signal?.throwIfAborted();
    return first;
  } finally {
    cancel();
    signal?.removeEventListener('abort', giveUp);
  }
}
