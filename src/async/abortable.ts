/**
 * Settles as `work` does, or rejects as soon as `signal` aborts: with `reason()`, or with the reason of the signal. `work`
 * itself goes on; its late failure is ignored.
 */
export async function abortable<T>(
  work: Promise<T>,
  signal: AbortSignal,
  reason: () => unknown = () => signal.reason,
): Promise<T> {
  work.catch(() => {});
  if (signal.aborted) throw reason();
  const aborted = Promise.withResolvers<never>();
  aborted.promise.catch(() => {});
  const stop = () => aborted.reject(reason());
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
