/** How one life went. */
export interface FinishedUse {
  /** Of its meter: one life counts once. */
  readonly id: string;
  readonly workspaceId: string;
  readonly profileId: string;
  readonly seconds: number;
}

export interface LearnedUse {
  readonly seconds: number;
  readonly samples: number;
}

/** So many lives before they say more than a guess. */
const LEAST_LIVES = 8;
const MOST_LIVES = 100;
const MOST_PROFILES = 10_000;

/**
 * How long sandboxes of a profile live, in each workspace: in memory, and learned again from the meters after a start.
 * What one workspace does tells another nothing. A cost grows with time, so the mean is what counts.
 */
export class UseBook {
  /** By workspace and profile, then by meter, oldest first. */
  readonly #lives = new Map<string, Map<string, FinishedUse>>();

  observe(use: FinishedUse): void {
    const key = `${use.workspaceId} ${use.profileId}`;
    const lives = this.#lives.get(key) ?? new Map<string, FinishedUse>();
    if (lives.size === 0 && this.#lives.size >= MOST_PROFILES) return;
    this.#lives.set(key, lives);
    lives.set(use.id, use);
    if (lives.size <= MOST_LIVES) return;
    const [oldest] = lives.keys();
    lives.delete(oldest as string);
  }

  /** `null` until enough of them ended. */
  learned(workspaceId: string, profileId: string): LearnedUse | null {
    const lives = [...(this.#lives.get(`${workspaceId} ${profileId}`)?.values() ?? [])];
    if (lives.length < LEAST_LIVES) return null;
    const total = lives.reduce((sum, life) => sum + life.seconds, 0);
    return { seconds: Math.max(1, Math.round(total / lives.length)), samples: lives.length };
  }
}
