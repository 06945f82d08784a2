import { SandboxerError } from '../contract/errors.ts';
import type { Caller } from '../core/caller.ts';
import type { Clock } from '../core/clock.ts';

export interface RateLimit {
  readonly perSecond: number;
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  at: number;
}

/** A bucket that is full again says no more than none: above this many, those are dropped. */
const MOST_BUCKETS = 10_000;

/** A token bucket for each key. A stream counts once, when it is asked for. */
export class RateLimits {
  readonly #limit: RateLimit;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(limit: RateLimit, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /** Throws `SBX_RATE_LIMITED` when nothing is left. */
  take({ keyId }: Caller): void {
    if (keyId === null) return;
    const { perSecond, burst } = this.#limit;
    const now = this.#clock.now();
    const bucket = this.#bucketOf(keyId, now);
    bucket.tokens = Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) / 1000) * perSecond);
    bucket.at = now;
    if (bucket.tokens < 1) {
      const retryAfterSeconds = Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond));
      throw new SandboxerError('SBX_RATE_LIMITED', `This key may send ${perSecond} requests a second.`, {
        retryAfterSeconds,
        members: { limit: burst, remaining: 0 },
      });
    }
    bucket.tokens -= 1;
  }

  /** What is left, as headers of the answer. */
  headersOf({ keyId }: Caller): Readonly<Record<string, string>> {
    const bucket = keyId === null ? undefined : this.#buckets.get(keyId);
    if (!bucket) return {};
    const { perSecond, burst } = this.#limit;
    return {
      'ratelimit-limit': String(burst),
      'ratelimit-remaining': String(Math.floor(bucket.tokens)),
      'ratelimit-reset': String(Math.ceil((burst - bucket.tokens) / perSecond)),
    };
  }

  #bucketOf(keyId: string, now: number): Bucket {
    const known = this.#buckets.get(keyId);
    if (known) return known;
    if (this.#buckets.size >= MOST_BUCKETS) this.#dropFull(now);
    const bucket = { tokens: this.#limit.burst, at: now };
    this.#buckets.set(keyId, bucket);
    return bucket;
  }

  #dropFull(now: number): void {
    const { perSecond, burst } = this.#limit;
    for (const [keyId, { tokens, at }] of this.#buckets) {
      if (tokens + ((now - at) / 1000) * perSecond >= burst) this.#buckets.delete(keyId);
    }
  }
}
