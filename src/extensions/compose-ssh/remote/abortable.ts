import { givenUp } from './failure.ts';

/** Rejects when the signal does; the work itself goes on and is swept by its stamp. */
export async function abortable<T>(
  work: Promise<T>,
  signal: AbortSignal,
  creation: 'not_created' | 'maybe_created',
): Promise<T> {
  if (signal.aborted) {
    work.catch(() => {});
    throw givenUp(signal, creation);
  }
  const aborted = Promise.withResolvers<never>();
  const stop = () => aborted.reject(givenUp(signal, creation));
  signal.addEventListener('abort', stop, { once: true });
  aborted.promise.catch(() => {});
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
    work.catch(() => {});
  }
}
