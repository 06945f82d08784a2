/**
 * Keeps a failing backend out of the way. Closed: used. Open: not used until `retryAt`, each time for longer. Half open:
 * one create tries it; its outcome closes or opens the breaker. Capacity is not failure and never comes here.
 */
export type BreakerState = 'closed' | 'open' | 'half_open';

export interface Breaker {
  /** Failures since the last success. */
  readonly consecutive: number;
  /** Outcomes of the recent past, newest last. */
  readonly recent: readonly { readonly at: number; readonly ok: boolean }[];
  /** How often it opened without a success in between. */
  readonly trips: number;
  readonly retryAt: number | null;
  /** When a create began the trial. A trial that never reports times out, so that the breaker does not stay shut for ever. */
  readonly triedAt: number | null;
}

export const CLOSED: Breaker = { consecutive: 0, recent: [], trips: 0, retryAt: null, triedAt: null };

const CONSECUTIVE_FAILURES = 5;
const WINDOW_MS = 60_000;
const WINDOW_LEAST = 10;
const WINDOW_FAILED_SHARE = 0.5;
const WINDOW_MOST = 200;
const FIRST_PAUSE_MS = 15_000;
const LONGEST_PAUSE_MS = 300_000;
const TRIAL_TIMEOUT_MS = 120_000;

export function breakerState(breaker: Breaker, now: number): BreakerState {
  if (breaker.retryAt === null) return 'closed';
  if (now < breaker.retryAt) return 'open';
  const isTried = breaker.triedAt !== null && now - breaker.triedAt < TRIAL_TIMEOUT_MS;
  return isTried ? 'open' : 'half_open';
}

/** A create was sent there. While the breaker is not closed, it is the trial. */
export function attempted(breaker: Breaker, now: number): Breaker {
  return breakerState(breaker, now) === 'half_open' ? { ...breaker, triedAt: now } : breaker;
}

/** Returns the breaker after a trial that ended without a verdict on the backend: the next create may try it. */
export function released(breaker: Breaker): Breaker {
  return breaker.triedAt === null ? breaker : { ...breaker, triedAt: null };
}

export function succeeded(breaker: Breaker, now: number): Breaker {
  return { ...CLOSED, recent: remember(breaker, now, true) };
}

export function failed(breaker: Breaker, now: number): Breaker {
  const recent = remember(breaker, now, false);
  const consecutive = breaker.consecutive + 1;
  const next = { ...breaker, recent, consecutive };
  const wasTrial = breaker.retryAt !== null && now >= breaker.retryAt;
  const bad = recent.filter(({ ok }) => !ok).length;
  const mostlyBad = recent.length >= WINDOW_LEAST && bad / recent.length > WINDOW_FAILED_SHARE;
  if (!wasTrial && breaker.retryAt !== null) return next;
  if (!wasTrial && consecutive < CONSECUTIVE_FAILURES && !mostlyBad) return next;
  const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** breaker.trips);
  return { ...next, trips: breaker.trips + 1, retryAt: now + pauseMs, triedAt: null };
}

function remember(breaker: Breaker, now: number, ok: boolean): Breaker['recent'] {
  const { recent } = breaker;
  const since = recent.findIndex(({ at }) => now - at < WINDOW_MS);
  const kept = since < 0 ? [] : recent.slice(Math.max(since, recent.length + 1 - WINDOW_MOST));
  return [...kept, { at: now, ok }];
}
