import { expect, it } from 'vitest';
import { TokenBuckets } from './token-buckets.ts';

it('TokenBuckets: what is remembered is bounded, and the latest names are kept', () => {
  const buckets = new TokenBuckets({ perSecond: 1, burst: 1 }, { now: () => 0 });
  for (let name = 0; name < 60_000; name += 1) buckets.take(String(name));
  expect(buckets.size).toBe(50_000);
  expect(buckets.take('59999')).toBe(1);
  expect(buckets.take('0')).toBe(0);
});
