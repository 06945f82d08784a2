import { expect, it } from 'vitest';
import type { Caller } from '../../core/tenancy/caller.ts';
import { RateLimits } from './rate-limits.ts';

const caller = (keyId: string | null): Caller => ({
  actor: 'agt',
  workspaceId: 'w',
  orgId: 'o',
  keyId,
  scopes: new Set(),
  local: keyId === null,
});

function setUp() {
  let now = 1_000_000;
  const clock = { now: () => now, sleep: async () => {} };
  const limits = new RateLimits({ perSecond: 2, burst: 4 }, clock);
  return {
    limits,
    pass: (ms: number) => {
      now += ms;
    },
  };
}

it('a rate limit lets a burst pass, then the rate, each key for itself', () => {
  const { limits, pass } = setUp();
  for (let i = 0; i < 4; i++) limits.take(caller('a'));
  expect(() => limits.take(caller('a'))).toThrow('SBX_RATE_LIMITED');
  limits.take(caller('b'));
  pass(500);
  limits.take(caller('a'));
  expect(() => limits.take(caller('a'))).toThrow('SBX_RATE_LIMITED');
  pass(60_000);
  for (let i = 0; i < 4; i++) limits.take(caller('a'));
  expect(() => limits.take(caller('a'))).toThrow('SBX_RATE_LIMITED');
});

it('a rate limit reports the remaining requests and the time to wait', () => {
  const { limits } = setUp();
  limits.take(caller('a'));
  expect(limits.headersOf(caller('a'))).toEqual({
    'ratelimit-limit': '4',
    'ratelimit-remaining': '3',
    'ratelimit-reset': '1',
  });
  for (let i = 0; i < 3; i++) limits.take(caller('a'));
  try {
    limits.take(caller('a'));
    expect.unreachable();
  } catch (error) {
    expect((error as { extras: object }).extras).toMatchObject({ retryAfterSeconds: 1 });
  }
});

it('a rate limit does not count the local administrator', () => {
  const { limits } = setUp();
  for (let i = 0; i < 100; i++) limits.take(caller(null));
  expect(limits.headersOf(caller(null))).toEqual({});
});

it('a rate limit survives a clock that goes back', () => {
  const { limits, pass } = setUp();
  limits.take(caller('a'));
  pass(-10_000);
  for (let i = 0; i < 3; i++) limits.take(caller('a'));
  expect(() => limits.take(caller('a'))).toThrow('SBX_RATE_LIMITED');
});
