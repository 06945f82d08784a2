import { abortable } from '../../async/abortable.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';

/** Makes `abortable` for a backend: rejects with its error when the signal does; the work goes on and is swept by its stamp. */
export function abortableFor(backend: string) {
  const given = (signal: AbortSignal): SandboxerError => {
    const late = signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError';
    return new SandboxerError(late ? 'SBX_TIMEOUT' : 'SBX_CANCELLED', 'It was given up before it was done.', {
      backend,
      creation: 'maybe_created',
    });
  };
  return <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
    abortable(work, signal, () => given(signal));
}
