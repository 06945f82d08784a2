import type { MeterRecord } from '../credits/meter.ts';

/** The use of one finished life. */
export interface FinishedUse {
  /** The id of its meter: one life counts once. */
  readonly id: string;
  readonly workspaceId: string;
  readonly profileId: string;
  readonly seconds: number;
  /** The share of its processors that was busy, and of its memory that was ever occupied; `null` where it was not counted. */
  readonly cpuShare: number | null;
  readonly memoryShare: number | null;
}

/** A mean, and how many lives it is of. */
export interface LearnedShare {
  readonly share: number;
  readonly samples: number;
}

export interface LearnedUse {
  readonly seconds: number;
  readonly samples: number;
  readonly cpu: LearnedShare | null;
  readonly memory: LearnedShare | null;
}

/** The fewest lives that say more than a guess. */
const LEAST_LIVES = 8;
const MOST_LIVES = 100;
const MOST_PROFILES = 10_000;

interface Lives {
  /** The lives by meter, oldest first. */
  readonly all: Map<string, FinishedUse>;
  /** The result of the lives; `undefined` until it is asked for. */
  learned: LearnedUse | null | undefined;
}

/**
 * Learns how sandboxes of a profile are used, in each workspace: in memory, and again from the meters after a start. The use of
 * one workspace reveals nothing to another. A cost grows with time, so the mean is what counts.
 */
export class UseBook {
  /** The lives by workspace and profile. */
  readonly #lives = new Map<string, Lives>();

  observe(use: FinishedUse): void {
    const key = `${use.workspaceId} ${use.profileId}`;
    const lives = this.#lives.get(key) ?? { all: new Map<string, FinishedUse>(), learned: undefined };
    if (lives.all.size === 0 && this.#lives.size >= MOST_PROFILES) return;
    this.#lives.set(key, lives);
    lives.learned = undefined;
    lives.all.set(use.id, use);
    if (lives.all.size <= MOST_LIVES) return;
    const [oldest] = lives.all.keys();
    lives.all.delete(oldest as string);
  }

  /** `null` until enough of them ended. */
  learned(workspaceId: string, profileId: string): LearnedUse | null {
    const lives = this.#lives.get(`${workspaceId} ${profileId}`);
    if (!lives) return null;
    if (lives.learned === undefined) lives.learned = learnedFrom(lives.all.values(), lives.all.size);
    return lives.learned;
  }
}

function learnedFrom(lives: Iterable<FinishedUse>, count: number): LearnedUse | null {
  if (count < LEAST_LIVES) return null;
  let total = 0;
  const cpu = new ShareOfTime();
  const memory = new ShareOfTime();
  for (const { seconds, cpuShare, memoryShare } of lives) {
    total += seconds;
    cpu.add(seconds, cpuShare);
    memory.add(seconds, memoryShare);
  }
  return {
    seconds: Math.max(1, Math.round(total / count)),
    samples: count,
    cpu: cpu.learned(),
    memory: memory.learned(),
  };
}

/** Weighed by how long each lived: the product with the mean time is then the mean of the products. To a thousandth. */
class ShareOfTime {
  #samples = 0;
  #seconds = 0;
  #used = 0;

  add(seconds: number, share: number | null): void {
    if (share === null) return;
    this.#samples += 1;
    this.#seconds += seconds;
    this.#used += seconds * share;
  }

  learned(): LearnedShare | null {
    if (this.#samples < LEAST_LIVES) return null;
    const share = this.#seconds > 0 ? Math.round((this.#used / this.#seconds) * 1000) / 1000 : 0;
    return { share, samples: this.#samples };
  }
}

/** Returns the use of a life from its closed meter. */
export function finishedUse(meter: MeterRecord & { readonly closedAt: number }): FinishedUse {
  const { id, workspaceId, profileId, openedAt, closedAt, cpuMs, millicpu, peakMemoryMb, memoryMb } = meter;
  const ms = Math.max(1, closedAt - openedAt);
  return {
    id,
    workspaceId,
    profileId,
    seconds: ms / 1000,
    cpuShare: cpuMs === null ? null : Math.min(1, (cpuMs * 1000) / (ms * millicpu)),
    memoryShare: peakMemoryMb === null ? null : Math.min(1, peakMemoryMb / memoryMb),
  };
}
