import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { limitedLine } from '../../core/tenancy/caller.ts';

/** Counts the open streams of each key, with those of the keys it made, and limits them. */
export class StreamSlots {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  get total(): number {
    let total = 0;
    for (const count of this.#open.values()) total += count;
    return total;
  }

  /** Takes a slot. Returns a function to call when the stream is over; a second call of it does nothing. */
  take(caller: Caller): () => void {
    const key = limitedLine(caller) ?? 'local';
    const count = this.#open.get(key) ?? 0;
    if (count >= this.#most) {
      throw new SandboxerError('SBX_RATE_LIMITED', `This key has its ${this.#most} streams open already.`, {
        retryAfterSeconds: 1,
        remedy: 'Close a stream first.',
      });
    }
    this.#open.set(key, count + 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const left = (this.#open.get(key) ?? 1) - 1;
      if (left > 0) this.#open.set(key, left);
      else this.#open.delete(key);
    };
  }
}
