/** Settings of the control plane that an operator may change. Times are milliseconds. */
export interface ControlSettings {
  /** How long a worker's claim on a sandbox outlives the worker's death. */
  readonly leaseMs: number;
  /** How long a synchronous request waits before it answers with the state reached so far. */
  readonly waitMs: number;
  readonly retryFirstMs: number;
  readonly retryMostMs: number;
  /** Teardowns that fail this often are reported as stuck; they go on being retried. */
  readonly stuckAfterTries: number;
  /** The failed teardowns of an ambiguous attempt after which a sandbox, while provisioning, fails instead of falling back. */
  readonly ambiguousTries: number;
  /** The largest share of the attempts that may be second ones, started next to a slow first. */
  readonly hedgeShare: number;
  /** A provisioned handle is written in the commit that makes the sandbox ready, or after this time if that takes longer. */
  readonly handleWithinMs: number;
  readonly teardownTimeoutMs: number;
  readonly operationTimeoutMs: number;
  readonly operationTries: number;
  /** A backend's own timeout lies this far behind our deadline, so that ours acts first. */
  readonly deadManGraceMs: number;
  /** The shortest time between two writes of activity. */
  readonly activityMs: number;
  readonly meterTickMs: number;
  /**
   * How far ahead a metered sandbox is paid for. If the server is gone, its backend ends it by itself after this time (and the
   * grace).
   */
  readonly fundMs: number;
  readonly reconcileMs: number;
  /** How long past its end a sandbox may live on while its checkpoint is taken. */
  readonly checkpointMs: number;
  /** Living sandboxes per workspace; `null` for no limit. */
  readonly maxLiving: number | null;
  /** Limits per workspace. */
  readonly maxImages: number;
  readonly maxImageBytes: number;
  readonly maxVolumes: number;
  readonly keepDestroyedMs: number;
  readonly keepEventsMs: number;
  readonly keepIdempotencyMs: number;
  /** A year when left out. */
  readonly keepAuditMs?: number;
  readonly keepHostFiguresMs?: number;
  /** Limits per workspace. Left out or `null`: no limit. */
  readonly maxSnapshots?: number | null;
  readonly maxSnapshotBytes?: number | null;
  /** The number of snapshots without a name or a time of their own that are kept, newest first, and for how long. */
  readonly keepSnapshots?: number | null;
  readonly keepSnapshotsMs?: number | null;
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

export const DEFAULT_SETTINGS: ControlSettings = {
  leaseMs: 30_000,
  waitMs: 5 * MINUTE,
  retryFirstMs: 1_000,
  retryMostMs: 2 * MINUTE,
  stuckAfterTries: 5,
  ambiguousTries: 3,
  hedgeShare: 0.03,
  handleWithinMs: 20,
  teardownTimeoutMs: 2 * MINUTE,
  operationTimeoutMs: 5 * MINUTE,
  operationTries: 3,
  deadManGraceMs: 2 * MINUTE,
  activityMs: 10_000,
  meterTickMs: MINUTE,
  fundMs: 10 * MINUTE,
  reconcileMs: MINUTE,
  checkpointMs: 90_000,
  maxLiving: null,
  maxImages: 100,
  maxImageBytes: 64 * 2 ** 30,
  maxVolumes: 100,
  keepDestroyedMs: 30 * DAY,
  keepEventsMs: 30 * DAY,
  keepIdempotencyMs: 2 * DAY,
};

/**
 * Returns the pause before a retry: it doubles from the first to the most, with up to a quarter of jitter so that retries spread.
 */
export function backoffMs(settings: ControlSettings, tries: number, random: number): number {
  const base = Math.min(settings.retryMostMs, settings.retryFirstMs * 2 ** Math.min(tries, 20));
  return Math.floor(base * (0.75 + random / 4));
}
