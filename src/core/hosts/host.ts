import type { HostSpec, HostSsh } from '../../contract/extensions/host.ts';
import type { PlacementHost } from '../ports/extension.ts';
import type { CanaryStanding } from './canary.ts';
import type { HostFigures } from './host-facts.ts';
import { turned } from './hysteresis.ts';

/** The machine that sand-boxer itself runs on. */
export const LOCAL_HOST = 'local';

export interface HostHealthRecord {
  readonly status: 'unknown' | 'healthy' | 'unhealthy';
  readonly detail: string;
  /** When `status` last changed. */
  readonly since: number | null;
  readonly checkedAt: number | null;
  readonly latencyMs: number | null;
  /** Failures, or successes while it is unhealthy, in a row. */
  readonly failures: number;
  readonly successes: number;
  /** The figures that the last successful probe read. */
  readonly figures?: HostFigures;
  /** By extension, whether it can make a sandbox there. */
  readonly canaries?: Readonly<Record<string, CanaryStanding>>;
}

export interface HostRecord {
  readonly id: string;
  readonly version: number;
  /** The origin of the row. `server`: the machine of the server itself, which is not registered. */
  readonly source: 'file' | 'api' | 'server';
  /** The description of the host. Without `ssh` it is the machine of the server. */
  readonly spec: Omit<HostSpec, 'ssh'> & { readonly ssh: HostSsh | null };
  readonly state: 'active' | 'draining';
  readonly health: HostHealthRecord;
  readonly createdAt: number;
}

/** The reserved and running load of a host: sums over the attempts that are not gone. */
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
  | {
      readonly ok: true;
      readonly latencyMs: number;
      readonly detail: string;
      /** `key value` lines of the machine's own words. */
      readonly facts?: string;
    }
  | { readonly ok: false; readonly detail: string };

/** The access to registered hosts that the use-cases need besides their rows. */
export interface HostPort {
  /** Returns what an extension needs to reach the host; renews certificates on the way. */
  reach(host: HostRecord): Promise<PlacementHost>;
  /** Tries once to reach the host. Never rejects. */
  probe(host: HostRecord, signal: AbortSignal): Promise<ProbeResult>;
  /** Facts of a machine, as `key value` lines of its own words. */
  facts(host: HostRecord, owner: string, signal: AbortSignal): Promise<string>;
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

/** Returns the health after a probe, by `turned`: 2 successes or 3 failures in a row flip it; the first probe decides alone. */
export function judgeHost(
  before: HostHealthRecord,
  result: ProbeResult,
  at: number,
  figures?: HostFigures,
): HostHealthRecord {
  return {
    ...before,
    ...turned(before, result.ok, at),
    detail: result.detail,
    checkedAt: at,
    latencyMs: result.ok ? result.latencyMs : before.latencyMs,
    ...(figures === undefined ? {} : { figures }),
  };
}

/** Returns the health that callers see: a host on which no backend can establish anything is not healthy because it answers. */
export function overallHealth({ status, detail, since, canaries = {} }: HostHealthRecord) {
  const tried = Object.entries(canaries);
  const failing = tried.filter(([, canary]) => canary.status === 'unhealthy');
  if (status === 'unhealthy' || tried.length === 0 || failing.length < tried.length)
    return { status, detail, since };
  const [[extension, canary]] = failing as [(typeof failing)[number]];
  return {
    status: 'unhealthy' as const,
    detail: `The canary of ${extension} fails: ${canary.detail}`,
    since: canary.since,
  };
}

/** Returns the host under which the health book keeps a backend: backends of the server's own machine have none. */
export function bookedHost({ id, spec }: HostRecord): string | null {
  return spec.ssh === null ? null : id;
}
