import { billableTime } from '../../core/credits/billable-time.ts';
import type { Clock } from '../../core/ports/clock.ts';

const LONGEST_TIMER_MS = 2_147_483_647;

function timer(ms: number, action: () => void): NodeJS.Timeout {
  return setTimeout(action, Math.min(Math.max(0, ms), LONGEST_TIMER_MS)).unref();
}

/** Clock of the machine. A sleeping worker does not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  billable: billableTime(
    () => Date.now(),
    () => performance.now(),
  ),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        clearTimeout(sleeping);
        reject(signal?.reason);
      };
      const sleeping = timer(ms, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
      signal?.addEventListener('abort', onAbort, { once: true });
    }),
  after: (ms, action) => {
    const waiting = timer(ms, action);
    return () => clearTimeout(waiting);
  },
};
