import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { limitedLine } from '../../core/tenancy/caller.ts';

export interface BufferLimits {
  readonly perKey: number;
  /** The most bytes of all keys together. */
  readonly total: number;
}

const RETRY_SECONDS = 1;

/**
 * Bounds the bytes that requests make this process hold: bodies, messages of WebSockets, collected output, unread output. Each of
 * them has an upper bound of its own; this is the bound on their sum.
 */
export class BufferBudget {
  readonly #limits: BufferLimits;
  readonly #byKey = new Map<string, number>();
  #total = 0;

  constructor(limits: BufferLimits) {
    this.#limits = limits;
  }

  get total(): number {
    return this.#total;
  }

  lease(caller: Pick<Caller, 'keyId' | 'limitLine' | 'local'>): BufferLease {
    // The administrator on the unix socket is bounded by the process alone.
    return new BufferLease(
      this,
      limitedLine(caller),
      caller.local ? this.#limits.total : this.#limits.perKey,
    );
  }

  /** Takes bytes for a lease. Returns why there is no room, and takes nothing then. */
  take(key: string | null, bytes: number, perKey: number): SandboxerError | null {
    const name = key ?? '';
    const held = (this.#byKey.get(name) ?? 0) + bytes;
    if (bytes > 0 && held > perKey) return keyIsFull(perKey);
    if (bytes > 0 && this.#total + bytes > this.#limits.total) return processIsFull();
    this.#total += bytes;
    if (held > 0) this.#byKey.set(name, held);
    else this.#byKey.delete(name);
    return null;
  }
}

/** Counts the bytes that one request or connection holds. */
export class BufferLease {
  readonly #budget: BufferBudget;
  readonly #key: string | null;
  readonly #perKey: number;
  #held = 0;
  #released = false;

  constructor(budget: BufferBudget, key: string | null, perKey: number) {
    this.#budget = budget;
    this.#key = key;
    this.#perKey = perKey;
  }

  get held(): number {
    return this.#held;
  }

  /**
   * Takes room for more bytes. Throws `SBX_RATE_LIMITED` when the key holds too much already, `SBX_UNAVAILABLE` when the process
   * does.
   */
  grow(bytes: number): void {
    const refusal = this.#change(bytes);
    if (refusal) throw refusal;
  }

  /** Whether there was room. */
  tryGrow(bytes: number): boolean {
    return this.#change(bytes) === null;
  }

  shrink(bytes: number): void {
    this.#change(-Math.min(bytes, this.#held));
  }

  /** Gives back all bytes, and counts no more. */
  release(): void {
    this.#change(-this.#held);
    this.#released = true;
  }

  #change(bytes: number): SandboxerError | null {
    if (this.#released || bytes === 0) return null;
    const refusal = this.#budget.take(this.#key, bytes, this.#perKey);
    if (!refusal) this.#held += bytes;
    return refusal;
  }
}

function keyIsFull(perKey: number): SandboxerError {
  const detail = `Requests of this key hold ${perKey / 1_048_576} MiB of this server already.`;
  return new SandboxerError('SBX_RATE_LIMITED', detail, {
    retryAfterSeconds: RETRY_SECONDS,
    remedy: 'Send fewer large bodies at once, and read what is answered.',
  });
}

function processIsFull(): SandboxerError {
  return new SandboxerError('SBX_UNAVAILABLE', 'Requests of all keys hold too much of this server.', {
    retryAfterSeconds: RETRY_SECONDS,
    remedy: 'Try again, with less at once.',
  });
}
