/** The source of time, so that a simulation can own it. Milliseconds since 1970. */
export interface Clock {
  now(): number;
  /** The clock of bills, where it is not `now`: it does not follow a clock that is set. */
  billable?(): number;
  /** Resolves after `ms`, or rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /**
   * Calls `action` after `ms`, unless the returned function was called by then. Cheaper than a `sleep`; `sleep` serves where this
   * is missing.
   */
  after?(ms: number, action: () => void): () => void;
}

/**
 * The abort reason of a timer or watch that is no longer needed. One value for all: making a reason for each would cost more than
 * the timer.
 */
export const NOT_NEEDED = new Error('no longer needed');

/** `clock.after`, of any clock. */
export function after(clock: Clock, ms: number, action: () => void): () => void {
  if (clock.after) return clock.after(ms, action);
  const over = new AbortController();
  clock.sleep(ms, over.signal).then(action, () => {});
  return () => over.abort(NOT_NEEDED);
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function isoTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}
