import type { UsedSoFar } from '../../../core/ports/extension.ts';
import type { Fields } from '../engine/spawner-client.ts';

const MIB = 1_048_576;

/** Returns the use that its control group counted; empty where there is none. */
export function usedSoFar({ cpu_us: cpuUs, peak }: Fields): UsedSoFar {
  return {
    ...(cpuUs !== undefined && { cpuMs: Number(cpuUs) / 1000 }),
    ...(peak !== undefined && { peakMemoryMb: Number(peak) / MIB }),
  };
}
