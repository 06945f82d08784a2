/**
 * Pool of sandboxes started ahead. Each is given out once: it is removed from the list here, and gets its name from the backend,
 * which gives a name only once. Its env, files, secrets and limits come after that.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

interface Warm {
  readonly name: string;
}

const WINDOW_MS = 10_000;
/** Refilling waits a little, so that it does not take the processor from the request that emptied the pool. */
const SETTLE_MS = 15;
const RETRY_MS = 5_000;
const RETRY_MOST_MS = 60_000;

export class WarmPool<WarmOne extends Warm> {
  readonly #most: () => number;
  readonly #make: (name: string) => Promise<WarmOne>;
  readonly #drop: (one: WarmOne) => void;
  readonly #retryMs: number;
  readonly #ready: WarmOne[] = [];
  readonly #arrivals: number[] = [];
  #filling = false;
  #closed = false;

  /** `drop` gets a sandbox that was made when none was wanted any more. */
  constructor(
    most: number | (() => number),
    make: (name: string) => Promise<WarmOne>,
    drop: (one: WarmOne) => void = () => {},
    retryMs = RETRY_MS,
  ) {
    this.#most = typeof most === 'number' ? () => most : most;
    this.#make = make;
    this.#drop = drop;
    this.#retryMs = retryMs;
  }

  /** Number of waiting sandboxes. */
  get size(): number {
    return this.#ready.length;
  }

  /** Returns the name of a ready sandbox, or `null`. Every call is an arrival: the pool is sized by their rate. */
  take(): WarmOne | null {
    const now = performance.now();
    this.#arrivals.push(now);
    while ((this.#arrivals[0] ?? now) < now - WINDOW_MS) this.#arrivals.shift();
    // Takes the newest: its last used files are most likely still in the caches.
    const one = this.#ready.pop() ?? null;
    this.fill();
    return one;
  }

  /** Removes a sandbox that has ended by itself. */
  lose(name: string): void {
    const at = this.#ready.findIndex((one) => one.name === name);
    if (at < 0) return;
    this.#ready.splice(at, 1);
    this.fill();
  }

  fill(): void {
    if (this.#filling || this.#closed || this.#most() <= 0) return;
    this.#filling = true;
    void this.#run();
  }

  /** Gives up a sandbox that another pool needs more. */
  shed(): WarmOne | null {
    return this.#ready.shift() ?? null;
  }

  close(): readonly WarmOne[] {
    this.#closed = true;
    return this.#ready.splice(0);
  }

  /** Half a second of arrivals, and one more. */
  get #wanted(): number {
    const perSecond = this.#arrivals.length / (WINDOW_MS / 1000);
    return Math.min(this.#most(), 1 + Math.ceil(perSecond / 2));
  }

  /** Fills the pool until it has enough: a sandbox that could not be made is tried again, also without further requests. */
  async #run(): Promise<void> {
    let failures = 0;
    await sleep(SETTLE_MS, undefined, { ref: false });
    while (!this.#closed && this.#ready.length < this.#wanted) {
      try {
        const one = await this.#make(`warm-${randomBytes(8).toString('hex')}`);
        failures = 0;
        if (this.#closed) this.#drop(one);
        else this.#ready.push(one);
      } catch {
        await sleep(Math.min(this.#retryMs * 2 ** failures++, RETRY_MOST_MS), undefined, { ref: false });
      }
    }
    // In the same turn as the last check: a `take` after it begins a new fill.
    this.#filling = false;
  }
}
