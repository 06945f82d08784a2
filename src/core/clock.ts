/** Time comes in through here, so that a simulation can own it. Milliseconds since 1970. */
export interface Clock {
  now(): number;
  /** What bills count by, where that is not `now`: it does not follow a clock that is set. */
  billable?(): number;
  /** Resolves after `ms`, or rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function isoTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}
