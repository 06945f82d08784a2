import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import type { Sandbox } from '../../contract/sandboxes/sandbox.ts';
import { byteText } from '../output/amounts.ts';
import { shortDuration } from '../output/relative-time.ts';

const CANARY = 'profile.sandbox-canary';
/** File where the profile's setup leaves its findings. */
const TELEMETRY = '/tmp/host-telemetry.txt';
/** Limit of its size: a few lines of each file, though a machine of another kind may have much more. */
const MOST_BYTES = 65_536;

/** Facts of the machine as the canary sees them from inside; unseen ones are `null`. */
export interface HostTelemetry {
  readonly kernel: string | null;
  readonly load: readonly number[] | null;
  readonly uptime_seconds: number | null;
  readonly memory_total_bytes: number | null;
  readonly memory_free_bytes: number | null;
}

function numberIn(text: string, pattern: RegExp): number | null {
  const found = pattern.exec(text)?.[1];
  return found === undefined ? null : Number(found);
}

function kibibytesIn(text: string, pattern: RegExp): number | null {
  const found = numberIn(text, pattern);
  return found === null ? null : found * 1024;
}

export function parseTelemetry(text: string): HostTelemetry {
  const load = /^== loadavg\n([\d.]+) ([\d.]+) ([\d.]+) /m.exec(text);
  return {
    kernel: /^== version\n(\S+ version \S+)/m.exec(text)?.[1]?.replace(' version', '') ?? null,
    load: load ? load.slice(1).map(Number) : null,
    uptime_seconds: numberIn(text, /^== uptime\n(\d+)/m),
    memory_total_bytes: kibibytesIn(text, /^MemTotal:\s+(\d+) kB/m),
    memory_free_bytes: kibibytesIn(text, /^MemAvailable:\s+(\d+) kB/m),
  };
}

/** Returns the canary's report of its host; `null` of any other sandbox, and of a canary that could not look around. */
export async function canaryReport(client: SandboxerClient, sandbox: Sandbox): Promise<HostTelemetry | null> {
  if (sandbox.profile !== CANARY || sandbox.state !== 'ready') return null;
  try {
    return parseTelemetry(await client.files.readText(sandbox.sandbox_id, TELEMETRY, { length: MOST_BYTES }));
  } catch {
    return null;
  }
}

export function telemetryText({ kernel, load, uptime_seconds, ...memory }: HostTelemetry): string {
  const { memory_free_bytes: free, memory_total_bytes: total } = memory;
  return [
    kernel,
    load && `load ${load.join(' ')}`,
    free !== null && total !== null && `${byteText(free)} of ${byteText(total)} memory free`,
    uptime_seconds !== null && `up ${shortDuration(uptime_seconds)}`,
  ]
    .filter(Boolean)
    .join(', ');
}
