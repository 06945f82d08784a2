import { afterEach, expect, test, vi } from 'vitest';
import { atTime } from './at-time.ts';

afterEach(() => vi.useRealTimers());

test('a time further ahead than a timer reaches is waited for', () => {
  vi.useFakeTimers();
  const day = 86_400_000;
  const called = vi.fn();
  atTime(() => Date.now(), Date.now() + 60 * day, called);
  vi.advanceTimersByTime(59 * day);
  expect(called).not.toHaveBeenCalled();
  vi.advanceTimersByTime(day + 1);
  expect(called).toHaveBeenCalledOnce();
});
