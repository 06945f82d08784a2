import type { Channel } from './channel.ts';

/** Long enough for the first program, too short for many idle sandboxes to hold a descriptor each. */
const KEEP_MS = 5_000;

/** Keeps the channel that proved a sandbox ready for its first request: it is not opened twice. */
export class KeptChannels {
  readonly #kept = new Map<string, { readonly channel: Channel; readonly timer: NodeJS.Timeout }>();
  readonly #opening = new Map<string, Promise<void>>();
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

  /** Keeps a channel once it is open. A failure is ignored here: the next request opens another and gets its error. */
  keepOpening(attemptId: string, opening: Promise<Channel>): void {
    const kept = opening.then(
      (channel) => {
        if (this.#opening.get(attemptId) === kept) this.keep(attemptId, channel);
        else void channel.session.close();
      },
      () => {},
    );
    this.#opening.set(attemptId, kept);
    void kept.finally(() => {
      if (this.#opening.get(attemptId) === kept) this.#opening.delete(attemptId);
    });
  }

  /** Takes a channel as `take` does, also one that is just being opened. */
  async takeSoon(attemptId: string): Promise<Channel | null> {
    await this.#opening.get(attemptId);
    return this.take(attemptId);
  }

  /** Takes the channel, once; the caller closes it. */
  take(attemptId: string): Channel | null {
    const kept = this.#kept.get(attemptId);
    if (kept === undefined) return null;
    this.#kept.delete(attemptId);
    clearTimeout(kept.timer);
    return kept.channel.isLost ? null : kept.channel;
  }

  drop(attemptId: string): void {
    this.#opening.delete(attemptId);
    void this.take(attemptId)?.session.close();
  }

  close(): void {
    for (const attemptId of [...this.#opening.keys(), ...this.#kept.keys()]) this.drop(attemptId);
  }
}
