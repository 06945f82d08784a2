import { SandboxerError } from '../../../contract/errors/errors.ts';

/** Rejects when the signal does; the work itself goes on and is swept by its stamp. */
export function abortableFor(backend: string) {
  const given = (signal: AbortSignal): SandboxerError => {
    const late = signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError';
    return new SandboxerError(late ? 'SBX_TIMEOUT' : 'SBX_CANCELLED', 'It was given up before it was done.', {
      backend,
      creation: 'maybe_created',
    });
  };
  return async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
    work.catch(() => {});
    if (signal.aborted) throw given(signal);
    let stop = () => {};
    const aborted = new Promise<never>((_resolve, reject) => {
      stop = () => reject(given(signal));
      signal.addEventListener('abort', stop, { once: true });
    });
    aborted.catch(() => {});
    try {
      return await Promise.race([work, aborted]);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  };
}
