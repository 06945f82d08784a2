import type { Resources } from '../../contract/profile.ts';
import { LEAST_MEMORY_MB, LEAST_PIDS } from '../../contract/profile.ts';
import type { LocalOptions } from './config.ts';
import { DEFAULTS } from './config.ts';
import type { HostFacts } from './host-facts.ts';
import type { SandboxRecord } from './record.ts';

const LEAST_CPU_MILLIS = 10;
const LEAST_DEFAULT_PIDS = 256;
/** Less has no room for the file system's own tables. */
const LEAST_DISK_MB = 16;

/** A request that names no limit. */
export const NO_RESOURCES: Resources = {
  cpu: null,
  memory_mb: null,
  disk_mb: null,
  pids: null,
  open_files: null,
  gpu: null,
};

/** What was asked for, or the least that works; where nothing was, enough for any work and not enough for the whole machine. */
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
  };
}

export function limitFields({
  memoryBytes,
  pids,
  cpuMillis,
}: SandboxRecord['limits']): Record<string, number> {
  return { memory: memoryBytes ?? -1, pids: pids ?? -1, cpu: cpuMillis ?? -1 };
}
