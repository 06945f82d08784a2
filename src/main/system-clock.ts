import type { Clock } from '../core/clock.ts';
import { billableTime } from '../core/credits/billable-time.ts';

const LONGEST_TIMER_MS = 2_147_483_647;

/** The machine's own time. A sleeping worker does not keep the process alive. */
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
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(
        () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
        Math.min(Math.max(0, ms), LONGEST_TIMER_MS),
      );
      timer.unref();
      signal?.addEventListener('abort', onAbort, { once: true });
    }),
};
