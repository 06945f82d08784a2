/** Health of a host, or of a backend on it, over the latest probes or canaries. */
export interface Verdict {
  readonly status: 'unknown' | 'healthy' | 'unhealthy';
  /** When `status` last changed. */
  readonly since: number | null;
  /** The results in a row. */
  readonly failures: number;
  readonly successes: number;
}

const FAILURES_TO_FALL = 3;
const SUCCESSES_TO_RISE = 2;

/** Returns the next verdict: 3 failures or 2 successes in a row flip it; the first result of an unknown one sets it. */
export function turned(before: Verdict, ok: boolean, at: number): Verdict {
  const failures = ok ? 0 : before.failures + 1;
  const successes = ok ? Math.min(before.successes + 1, SUCCESSES_TO_RISE) : 0;
  const turns = ok ? successes >= SUCCESSES_TO_RISE : failures >= FAILURES_TO_FALL;
  const said = ok ? 'healthy' : 'unhealthy';
  const status = before.status === 'unknown' || turns ? said : before.status;
  return { status, since: status === before.status ? before.since : at, failures, successes };
}
