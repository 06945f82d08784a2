import { describe, expect, it } from 'vitest';
import { parseTelemetry, telemetryText } from './canary-report.ts';

const SEEN = `== version
Linux version 6.1.0-27-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14) 12.2.0) #1 SMP
== loadavg
0.42 1.00 2.50 1/312 4711
== uptime
93784.25 100000.00
== meminfo
MemTotal:        8000000 kB
MemFree:          100000 kB
MemAvailable:    6000000 kB
`;

describe('canary report', () => {
  it('the canary report is one line', () => {
    expect(telemetryText(parseTelemetry(SEEN))).toBe(
      'Linux 6.1.0-27-amd64, load 0.42 1 2.5, 6.1 GB of 8.2 GB memory free, up 1d2h',
    );
  });

  it('the canary report leaves out values that the canary could not see', () => {
    const some = parseTelemetry('== version\ncat: /proc/version: Permission denied\n== uptime\n60.5 1.0\n');
    expect(some).toEqual({
      kernel: null,
      load: null,
      uptime_seconds: 60,
      memory_total_bytes: null,
      memory_free_bytes: null,
    });
    expect(telemetryText(some)).toBe('up 1m');
  });
});
