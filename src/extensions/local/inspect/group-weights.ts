/** Reads from the kernel whether the group of all sandboxes weighs less than its siblings, such as the server. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Fields } from '../engine/spawner-client.ts';

/** Weight of a process in no group on version 1, and of every group on version 2. */
const USUAL_SHARES = 1024;
const USUAL_WEIGHT = 100;

/** Reads a weight. Some files name the default first: "default 100". */
function weightIn(directory: string, file: string): number {
  try {
    return Number(/\d+/.exec(readFileSync(join(directory, file), 'utf8'))?.[0] ?? Number.NaN);
  } catch {
    return Number.NaN;
  }
}

export interface Weights {
  readonly cpu: boolean;
  readonly io: boolean;
}

/** Returns the weights. `fields`: the groups of one sandbox, which lie below the group of all. */
export function weightsOf({ group_unified, group_cpu, group_blkio }: Fields): Weights {
  if (group_unified !== undefined) {
    const all = dirname(group_unified);
    return {
      cpu: weightIn(all, 'cpu.weight') < USUAL_WEIGHT,
      io: ['io.bfq.weight', 'io.weight'].some((file) => weightIn(all, file) < USUAL_WEIGHT),
    };
  }
  const blkio = group_blkio === undefined ? null : dirname(group_blkio);
  return {
    cpu: group_cpu !== undefined && weightIn(dirname(group_cpu), 'cpu.shares') < USUAL_SHARES,
    io: ['blkio.bfq.weight', 'blkio.weight'].some(
      (file) => blkio !== null && weightIn(blkio, file) < USUAL_WEIGHT,
    ),
  };
}
