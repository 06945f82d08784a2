import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { limitedLine } from '../../core/tenancy/caller.ts';
import type { RateLimit } from './token-buckets.ts';
import { TokenBuckets } from './token-buckets.ts';

/** Keeps a token bucket for each key, with its successors and those it made. A stream counts once, when it is asked for. */
export class RateLimits {
  readonly #buckets: TokenBuckets;

  constructor(limit: RateLimit, clock: Clock) {
    this.#buckets = new TokenBuckets(limit, clock);
  }

  /** Throws `SBX_RATE_LIMITED` when nothing is left. */
  take(caller: Caller): void {
    const line = limitedLine(caller);
    if (line === null) return;
    const retryAfterSeconds = this.#buckets.take(line);
    if (retryAfterSeconds === 0) return;
    const { perSecond, burst } = this.#buckets.limit;
    throw new SandboxerError(
      'SBX_RATE_LIMITED',
      `This key, with the keys it made, may send ${perSecond} requests a second.`,
      {
        retryAfterSeconds,
        members: { limit: burst, remaining: 0 },
      },
    );
  }

  /** Returns the remaining rate, as headers of the answer. */
  headersOf(caller: Caller): Readonly<Record<string, string>> {
    const line = limitedLine(caller);
    const left = line === null ? undefined : this.#buckets.left(line);
    if (left === undefined) return {};
    const { perSecond, burst } = this.#buckets.limit;
    return {
      'ratelimit-limit': String(burst),
      'ratelimit-remaining': String(Math.floor(left)),
      'ratelimit-reset': String(Math.ceil((burst - left) / perSecond)),
    };
  }
}
