import { abortable as orAborted } from '../../../async/abortable.ts';
import { givenUp } from './failure.ts';

/** Rejects when the signal does; the work itself goes on and is swept by its stamp. */
export async function abortable<T>(
  work: Promise<T>,
  signal: AbortSignal,
  creation: 'not_created' | 'maybe_created',
): Promise<T> {
  return await orAborted(work, signal, () => givenUp(signal, creation));
}
