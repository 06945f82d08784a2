import type { Channel } from './channel.ts';

/** Long enough for the first program, too short for many idle sandboxes to hold a descriptor each. */
const KEEP_MS = 5_000;

/** The channel that proved a sandbox ready is the one its first user gets: it is not opened twice. */
export class KeptChannels {
  readonly #kept = new Map<string, { readonly channel: Channel; readonly timer: NodeJS.Timeout }>();
  readonly #keepMs: number;

  constructor(keepMs = KEEP_MS) {
    this.#keepMs = keepMs;
  }

  keep(attemptId: string, channel: Channel): void {
    this.drop(attemptId);
    const timer = setTimeout(() => this.drop(attemptId), this.#keepMs);
    timer.unref();
    this.#kept.set(attemptId, { channel, timer });
  }

  /** Once: whoever takes it closes it. */
  take(attemptId: string): Channel | null {
    const kept = this.#kept.get(attemptId);
    if (kept === undefined) return null;
    this.#kept.delete(attemptId);
    clearTimeout(kept.timer);
    return kept.channel.isLost ? null : kept.channel;
  }

  drop(attemptId: string): void {
    void this.take(attemptId)?.session.close();
  }

  close(): void {
    for (const attemptId of [...this.#kept.keys()]) this.drop(attemptId);
  }
}
