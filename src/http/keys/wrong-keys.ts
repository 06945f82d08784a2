import type { IncomingMessage } from 'node:http';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { RateLimit } from '../bounds/token-buckets.ts';
import { TokenBuckets } from '../bounds/token-buckets.ts';
import type { TrustedProxies } from './client-address.ts';
import { clientAddress, holderOf } from './client-address.ts';

/** The limit leaves room for a program that was started with an old key and tries again. */
const LIMIT: RateLimit = { perSecond: 1, burst: 30 };

/**
 * Counts requests with a wrong key by the address they come from. Only such requests are refused: a key is looked up first, so
 * that a right one is accepted whatever else its address sends.
 */
export class WrongKeys {
  readonly #buckets: TokenBuckets;
  readonly #proxies: TrustedProxies;

  constructor(clock: Pick<Clock, 'now'>, proxies: TrustedProxies, limit = LIMIT) {
    this.#buckets = new TokenBuckets(limit, clock);
    this.#proxies = proxies;
  }

  /** Returns why this request is refused: `SBX_UNAUTHENTICATED`, or `SBX_RATE_LIMITED` after too many from the same address. */
  refusal(request: IncomingMessage): SandboxerError {
    const address = clientAddress(request, this.#proxies);
    const retryAfterSeconds = address === null ? 0 : this.#buckets.take(holderOf(address));
    if (retryAfterSeconds === 0)
      return new SandboxerError('SBX_UNAUTHENTICATED', 'The key is not known, revoked or expired.');
    return new SandboxerError('SBX_RATE_LIMITED', 'Too many wrong keys came from this address.', {
      retryAfterSeconds,
      remedy: 'Send a key that is neither revoked nor expired, or wait for the time in Retry-After.',
    });
  }
}
