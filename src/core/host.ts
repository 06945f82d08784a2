import type { HostSpec } from '../contract/host.ts';
import type { PlacementHost } from './extension.ts';

/** The machine that sand-boxer itself runs on. */
export const LOCAL_HOST = 'local';

export interface HostHealthRecord {
  readonly status: 'unknown' | 'healthy' | 'unhealthy';
  readonly detail: string;
  /** When it became so. */
  readonly since: number | null;
  readonly checkedAt: number | null;
  readonly latencyMs: number | null;
  /** Failures, or successes while it is unhealthy, in a row. */
  readonly failures: number;
  readonly successes: number;
}

export interface HostRecord {
  readonly id: string;
  readonly version: number;
  readonly source: 'file' | 'api';
  readonly spec: HostSpec;
  readonly state: 'active' | 'draining';
  readonly health: HostHealthRecord;
  readonly createdAt: number;
}

/** What is reserved and running on a host: sums over the attempts that are not gone. */
export interface HostLoad {
  readonly sandboxes: number;
  readonly millicpu: number;
  readonly memoryMb: number;
}
export type HostLoads = Readonly<Record<string, HostLoad>>;

/** A figure of a host at a time: kept for a while. */
export interface HostSample {
  readonly hostId: string;
  readonly kind: 'canary' | 'probe';
  readonly at: number;
  readonly data: Readonly<Record<string, number | string | boolean | null>>;
}

export type ProbeResult =
  | { readonly ok: true; readonly latencyMs: number; readonly detail: string }
  | { readonly ok: false; readonly detail: string };

/** What the use-cases need of the registered hosts besides their rows. */
export interface HostPort {
  /** Everything an extension needs to get there: certificates are renewed on the way. */
  reach(host: HostRecord): Promise<PlacementHost>;
  /** One try to get there. Never rejects. */
  probe(host: HostRecord, signal: AbortSignal): Promise<ProbeResult>;
  /** Facts of a machine, as `key value` lines of its own words; of this one for `null`. */
  facts(host: HostRecord | null, owner: string, signal: AbortSignal): Promise<string>;
}

export const UNPROBED: HostHealthRecord = {
  status: 'unknown',
  detail: 'not probed yet',
  since: null,
  checkedAt: null,
  latencyMs: null,
  failures: 0,
  successes: 0,
};

const FAILURES_TO_FALL = 3;
const SUCCESSES_TO_RISE = 2;

/**
 * With hysteresis: one lost packet takes no host out, one answered probe brings none back. What was never known is as
 * the first probe says.
 */
export function judgeHost(before: HostHealthRecord, result: ProbeResult, at: number): HostHealthRecord {
  const failures = result.ok ? 0 : before.failures + 1;
  const successes = result.ok ? before.successes + 1 : 0;
  const turned = result.ok ? successes >= SUCCESSES_TO_RISE : failures >= FAILURES_TO_FALL;
  const said = result.ok ? 'healthy' : 'unhealthy';
  const status = before.status === 'unknown' || turned ? said : before.status;
  return {
    status,
    detail: result.detail,
    since: status === before.status ? before.since : at,
    checkedAt: at,
    latencyMs: result.ok ? result.latencyMs : before.latencyMs,
    failures,
    successes: Math.min(successes, SUCCESSES_TO_RISE),
  };
}
