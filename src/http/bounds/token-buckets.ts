import type { Clock } from '../../core/ports/clock.ts';

export interface RateLimit {
  readonly perSecond: number;
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  at: number;
}

/** The most buckets. Above it, the least recently used is dropped: it is likely to be full, which is the same as none. */
const MOST_BUCKETS = 50_000;

/** Keeps token buckets by name. */
export class TokenBuckets {
  readonly limit: RateLimit;
  readonly #clock: Pick<Clock, 'now'>;
  /** The buckets, least recently used first. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(limit: RateLimit, clock: Pick<Clock, 'now'>) {
    this.limit = limit;
    this.#clock = clock;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Takes a token. Returns 0, or the seconds to wait where none is left. */
  take(name: string): number {
    const { perSecond, burst } = this.limit;
    const now = this.#clock.now();
    const { tokens, at } = this.#buckets.get(name) ?? { tokens: burst, at: now };
    const bucket = { tokens: Math.min(burst, tokens + (Math.max(0, now - at) / 1000) * perSecond), at: now };
    this.#buckets.delete(name);
    this.#buckets.set(name, bucket);
    if (this.#buckets.size > MOST_BUCKETS) this.#dropOldest();
    if (bucket.tokens < 1) return Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond));
    bucket.tokens -= 1;
    return 0;
  }

  /** Returns the tokens left when the last one was taken; `undefined` for an unknown name. */
  left(name: string): number | undefined {
    return this.#buckets.get(name)?.tokens;
  }

  #dropOldest(): void {
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined) this.#buckets.delete(oldest);
  }
}
