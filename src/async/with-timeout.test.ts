import { expect, it } from 'vitest';
import type { After } from './with-timeout.ts';
import { waitAtMost, withTimeout } from './with-timeout.ts';

const never = new Promise<never>(() => {});

/** Clock that fires when the test calls it. */
function manualClock() {
  const timers = new Map<() => void, number>();
  const after: After = (ms, action) => {
    timers.set(action, ms);
    return () => timers.delete(action);
  };
  const strike = () => {
    for (const action of [...timers.keys()]) action();
  };
  return { timers, after, strike };
}

const late = () => new Error('late');

it('withTimeout: a call in time gives its result and cancels the timer', async () => {
  const { after, timers } = manualClock();
  const call = withTimeout({ after, timeoutMs: 50 }, late, async () => {
    expect([...timers.values()]).toEqual([50]);
    return 'done';
  });
  expect(await call).toBe('done');
  expect(timers.size).toBe(0);
});

it('withTimeout: the time aborts the call and rejects, although the call does not listen', async () => {
  const { after, strike } = manualClock();
  let given: AbortSignal | undefined;
  const call = withTimeout({ after, timeoutMs: 50 }, late, (signal) => {
    given = signal;
    return never;
  });
  strike();
  await expect(call).rejects.toThrow('late');
  expect(given?.reason).toMatchObject({ message: 'late' });
});

it('withTimeout: an abort of the caller reaches the call with its reason', async () => {
  const { after, timers } = manualClock();
  const controller = new AbortController();
  const { signal } = controller;
  const call = withTimeout({ after, timeoutMs: 50, signal }, late, () => never);
  controller.abort(new Error('enough'));
  await expect(call).rejects.toThrow('enough');
  expect(timers.size).toBe(0);
  await expect(withTimeout({ after, timeoutMs: 50, signal }, late, async () => 'x')).rejects.toThrow(
    'enough',
  );
});

it('waitAtMost: the value in time, null after it, the reason on an abort', async () => {
  const { after, strike, timers } = manualClock();
  expect(await waitAtMost(Promise.resolve('in time'), { after, timeoutMs: 5 })).toBe('in time');
  const tooLate = waitAtMost(never, { after, timeoutMs: 5 });
  strike();
  expect(await tooLate).toBeNull();
  const controller = new AbortController();
  const aborted = waitAtMost(never, { after, timeoutMs: 5, signal: controller.signal });
  controller.abort(new Error('enough'));
  await expect(aborted).rejects.toThrow('enough');
  expect(timers.size).toBe(0);
});
