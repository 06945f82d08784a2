import { statfsSync } from 'node:fs';
import type { Resources } from '../../../contract/profiles/profile.ts';
import { LEAST_MEMORY_MB, LEAST_PIDS } from '../../../contract/profiles/profile.ts';
import type { SandboxRecord } from '../state/record.ts';
import type { HostFacts } from './host-facts.ts';
import type { LocalOptions } from './options.ts';
import { DEFAULTS } from './options.ts';

const LEAST_CPU_MILLIS = 10;
const LEAST_DEFAULT_PIDS = 256;
/** Least size: a smaller disk has no room for the file system's own tables. */
const LEAST_DISK_MB = 16;
const MIB = 1_048_576;
/** Least room: on a nearly full disk the error must name the disk, not the sandbox. */
const LEAST_ROOM = 64 * MIB;

/** Returns the bytes that a sandbox without a disk of its own may write to the disk of the machine. */
function roomIn(directory: string, { defaultDiskMb }: LocalOptions): number {
  if (defaultDiskMb !== undefined) return defaultDiskMb * MIB;
  const { bavail, bsize } = statfsSync(directory);
  return Math.max(LEAST_ROOM, Math.floor((bavail * bsize) / 2));
}

/** Resources of a request that names no limit. */
export const NO_RESOURCES: Resources = {
  cpu: null,
  memory_mb: null,
  disk_mb: null,
  pids: null,
  open_files: null,
  gpu: null,
};

/**
 * Returns the requested limits, or the least that works; the defaults are enough for any work and not enough for the whole
 * machine.
 */
export function limitsOf(
  { cpu, memory_mb, pids, open_files, disk_mb }: Resources,
  facts: HostFacts,
  options: LocalOptions,
): SandboxRecord['limits'] {
  const has = (name: 'memory' | 'pids') => facts.controllers.includes(name);
  const share = options.defaultMemoryShare ?? DEFAULTS.defaultMemoryShare;
  const someMemory = has('memory') ? Math.floor(facts.memoryBytes * share) : null;
  const fewPids = Math.min(DEFAULTS.defaultPids, Math.max(LEAST_DEFAULT_PIDS, facts.mostPids >> 5));
  const somePids = has('pids') ? (options.defaultPids ?? fewPids) : null;
  return {
    memoryBytes: memory_mb === null ? someMemory : Math.max(LEAST_MEMORY_MB, memory_mb) * 1_048_576,
    pids: pids === null ? somePids : Math.max(LEAST_PIDS, pids),
    cpuMillis: cpu === null ? null : Math.max(LEAST_CPU_MILLIS, Math.round(cpu * 1000)),
    openFiles: open_files,
    diskMb: disk_mb === null ? null : Math.max(LEAST_DISK_MB, disk_mb),
    roomBytes: disk_mb === null ? roomIn(options.directory, options) : null,
  };
}

export function limitFields({
  memoryBytes,
  pids,
  cpuMillis,
  roomBytes,
}: SandboxRecord['limits']): Record<string, number> {
  return { memory: memoryBytes ?? -1, pids: pids ?? -1, cpu: cpuMillis ?? -1, room: roomBytes ?? -1 };
}
